/**
 * Which resource a name on the command line means: the one of that name, otherwise the only one that has it as another
 * name. Workload endpoints have long names that nobody types; those of their pods and containers name them too.
 */
import { shortContainerId } from "../../cni/names.ts";
import { listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import { quoted } from "../../quote.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { namedBy } from "../workload-names.ts";
import { referenceText, type Selection } from "./reference.ts";
import { findAll, findOne } from "./stored.ts";

/** A name that means nothing stays as it is: the command then reports it. */
export async function resolveName(store: Datastore, kind: AdminKind, name: ResourceName): Promise<ResourceName> {
  const { otherNames } = kind;
  if (otherNames === undefined) return name;
  const own = await findOne(store, kind, name);
  if (own.readable.length + own.unreadable.length > 0) return name;
  const { readable } = await findAll(store, kind, name.namespace);
  const [only, ...others] = namedBy(name.name, readable, ({ resource }) => otherNames(resource));
  if (only === undefined) return name;
  if (others.length === 0) return { ...name, name: only.resource.metadata.name };
  const found = [only, ...others].map(({ resource }) => ({ own: resource.metadata.name, ...otherNames(resource) }));
  const all = found.map(({ own, ids: [id], node }) => {
    // One container has an endpoint for each of its interfaces.
    const isOnly = id !== undefined && found.filter(({ ids }) => ids.includes(id)).length === 1;
    const shown = isOnly ? shortContainerId(id) : referenceText(kind, { ...name, name: own });
    return node === undefined ? shown : `${shown} (node ${node})`;
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
    for (const name of names) own.push(await resolveName(store, kind, name));
    resolved.push({ kind, names: own });
  }
  return resolved;
}
