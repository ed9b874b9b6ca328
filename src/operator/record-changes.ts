/** What to write to the datastore for the pools and the settings of the node agents. Pure. */
import type { OrderedChange } from "../datastore/datastore.ts";
import { identity } from "../identity.ts";
import type { IPPool } from "../model/ip-pool.ts";
import { NODE_AGENT_CONFIGURATION, POOL } from "../model/kinds.ts";
import type { NodeAgentConfiguration, NodeAgentConfigurationSpec } from "../model/node-agent-configuration.ts";
import { isManaged, MANAGED_BY } from "../release/managed-by-label.ts";
import type { StoredResource } from "./pools-and-settings.ts";

const CONFIGURATION = "default";
/** The fields that the Installation sets, so that one that it no longer sets is removed; the others are the administrator's. */
const FIELDS_ANNOTATION = `${identity.operatorApiGroup}/fields`;

export function poolChanges(
  wanted: { readonly create: readonly IPPool[]; readonly update: readonly IPPool[] },
  existing: readonly StoredResource<IPPool>[],
): readonly OrderedChange[] {
  const created = wanted.create.map((pool) => {
    return { kind: "create", key: POOL.key(pool.metadata), value: POOL.codec.write(pool) } as const;
  });
  const updated = wanted.update.flatMap((pool) => {
    const before = existing.find(({ resource }) => resource.metadata.name === pool.metadata.name);
    if (before === undefined) return [];
    const { text, revision } = before;
    return [{ kind: "update", key: POOL.key(pool.metadata), value: POOL.codec.write(pool, text), revision } as const];
  });
  return [...created, ...updated];
}

/** The pools that there are after these changes: what is rendered depends on them. */
export function poolsAfter(existing: readonly IPPool[], written: readonly IPPool[]): readonly IPPool[] {
  const names = new Set(written.map(({ metadata }) => metadata.name));
  return [...existing.filter(({ metadata }) => !names.has(metadata.name)), ...written];
}

export function configurationChanges(
  wanted: NodeAgentConfigurationSpec,
  existing: readonly StoredResource<NodeAgentConfiguration>[],
): readonly OrderedChange[] {
  const key = NODE_AGENT_CONFIGURATION.key({ name: CONFIGURATION });
  const annotations = { [FIELDS_ANNOTATION]: Object.keys(wanted).sort().join(",") };
  const before = existing.find(({ resource }) => resource.metadata.name === CONFIGURATION);
  if (before === undefined) {
    const metadata = { name: CONFIGURATION, labels: MANAGED_BY, annotations };
    const { codec } = NODE_AGENT_CONFIGURATION;
    return [{ kind: "create", key, value: codec.write(codec.make(metadata, wanted)) }];
  }
  const { resource, text, revision } = before;
  const formerly = (resource.metadata.annotations?.[FIELDS_ANNOTATION] ?? "").split(",");
  const left = Object.entries(resource.spec).filter(([field]) => !formerly.includes(field));
  const after: NodeAgentConfiguration = {
    ...resource,
    metadata: { ...resource.metadata, annotations: { ...resource.metadata.annotations, ...annotations } },
    spec: { ...Object.fromEntries(left), ...wanted },
  };
  if (Bun.deepEquals(after, resource)) return [];
  return [{ kind: "update", key, value: NODE_AGENT_CONFIGURATION.codec.write(after, text), revision }];
}

/** Settings that the operator created go with the Installation; those of an administrator stay. */
export function configurationRemoval(
  existing: readonly StoredResource<NodeAgentConfiguration>[],
): readonly OrderedChange[] {
  return existing
    .filter(({ resource: { metadata } }) => metadata.name === CONFIGURATION)
    .filter(({ resource }) => isManaged(resource))
    .map(({ resource, revision }) => {
      return { kind: "delete", key: NODE_AGENT_CONFIGURATION.key(resource.metadata), revision } as const;
    });
}
