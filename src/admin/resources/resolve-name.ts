/**
 * Which resources a name on the command line means: the one of that name, otherwise those that have it as another
 * name. Workload endpoints have long names that nobody types; those of their pods and containers name them too.
 */
import { shortContainerId } from "../../cni/names.ts";
import { listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import { quoted } from "../../quote.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { namedBy } from "../kinds/workload-names.ts";
import { referenceText, type Selection } from "./reference.ts";
import { findAll, findOne } from "./stored.ts";

/** For a command that changes one resource. A name that means nothing stays as it is: the command then reports it. */
export async function resolveName(store: Datastore, kind: AdminKind, name: ResourceName): Promise<ResourceName> {
  const [only = name, ...others] = await resolveNames(store, kind, name);
  if (others.length === 0) return only;
  const all = [only, ...others].map((each) => referenceText(kind, each));
  throw new PluginError("resource-invalid", `${quoted(name.name)} has ${all.length} endpoints: ${all.join(", ")}`, {
    details: "give one of them: a container has an endpoint in each of its networks",
  });
}

/** Several if it names one container that is in several networks. */
async function resolveNames(store: Datastore, kind: AdminKind, name: ResourceName): Promise<readonly ResourceName[]> {
  const { otherNames } = kind;
  if (otherNames === undefined) return [name];
  const own = await findOne(store, kind, name);
  if (own.readable.length + own.unreadable.length > 0) return [name];
  const { readable } = await findAll(store, kind, name.namespace);
  const found = namedBy(name.name, readable, ({ resource }) => otherNames(resource)).map(({ resource }) => ({
    own: resource.metadata.name,
    ...otherNames(resource),
  }));
  if (found.length === 0) return [name];
  const workloads = Map.groupBy(found, ({ own: whole, ids: [id = whole], node }) => JSON.stringify([node, id]));
  if (workloads.size === 1) return found.map((each) => ({ ...name, name: each.own }));
  const all = Array.from(workloads.values(), ([first]) => {
    const id = first?.ids[0];
    const shown = id === undefined ? referenceText(kind, { ...name, name: first?.own ?? "" }) : shortContainerId(id);
    return first?.node === undefined ? shown : `${shown} (node ${first.node})`;
  });
  throw new PluginError("resource-invalid", `${quoted(name.name)} names ${all.length} resources: ${listed(all)}`, {
    details: "give the ID or name of one of them",
  });
}

export async function resolveSelections(
  store: Datastore,
  selections: readonly Selection[],
): Promise<readonly Selection[]> {
  const resolved: Selection[] = [];
  for (const { kind, names } of selections) {
    const own: ResourceName[] = [];
    for (const name of names) own.push(...(await resolveNames(store, kind, name)));
    resolved.push({ kind, names: own });
  }
  return resolved;
}
