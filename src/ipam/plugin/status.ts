/** STATUS: whether an ADD could be served now. */
import { PluginError } from "../../errors.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { requireReady, WANTED_CLUSTER } from "../cluster.ts";
import { decodePool } from "../records.ts";
import type { Session, Surroundings } from "./session.ts";

export async function status(session: Session, surroundings: Pick<Surroundings, "now" | "uuid">): Promise<void> {
  const { assignIpv4, assignIpv6 } = session.config.ipam;
  try {
    const { answers } = await session.store.read([
      WANTED_CLUSTER,
      { kind: "prefix", prefix: resourcesPrefix("ippools") },
    ]);
    const whenBare = session.settings.kind === "embedded" ? "create" : "refuse";
    requireReady(answers[0], { whenBare, now: surroundings.now(), uid: surroundings.uuid() });
    const families = (answers[1] ?? [])
      .map(decodePool)
      .filter((pool) => !pool.disabled)
      .map((pool) => pool.cidr.network.family);
    const missing = [...(assignIpv4 ? [4 as const] : []), ...(assignIpv6 ? [6 as const] : [])].filter(
      (family) => !families.includes(family),
    );
    if (missing.length > 0)
      throw new PluginError("not-available", `Cannot assign IPv${missing[0]} addresses: no pool is enabled`);
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind !== "not-available") {
      throw new PluginError("not-available", failure.message, { details: failure.details, cause: failure });
    }
    throw failure;
  }
}
