/** A tier is deleted only without its policies: they would be evaluated last, after those that they should precede. */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY } from "../../model/kinds.ts";
import { DEFAULT_TIER, type Tier } from "../../model/tier.ts";
import type { StoredResource } from "../kinds/kind.ts";
import { policyTiers } from "../kinds/policy-references.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { lostRace } from "../resources/lost-race.ts";
import { refuseInUse } from "./uses.ts";

export async function deleteTier(
  store: Datastore,
  { resource, key, revision }: StoredResource<Tier>,
): Promise<ActionResult> {
  const { name } = resource.metadata;
  const action = `Cannot delete tier/${name}`;
  if (name === DEFAULT_TIER) {
    throw new PluginError("resource-in-use", `${action}: policies without a tier are in it`, {
      details: "delete the policies instead",
    });
  }
  const users = [
    ...(await policyTiers(store, GLOBAL_NETWORK_POLICY)),
    ...(await policyTiers(store, NETWORK_POLICY)),
  ].flatMap(({ reference, tier }) => (tier === name ? [reference] : []));
  if (users.length > 0) throw refuseInUse(action, users, "delete these policies first, or apply them in another tier");
  const written = await store.commit([{ kind: "delete", key, revision }]);
  if (!written.ok && written.reason !== "missing") throw lostRace(action, written.reason);
  return { action: "deleted" };
}
