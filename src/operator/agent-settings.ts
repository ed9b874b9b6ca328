/** What to write to the datastore for the settings of the node agents. Pure. */
import type { OrderedChange } from "../datastore/datastore.ts";
import { identity } from "../identity.ts";
import { NODE_AGENT_CONFIGURATION } from "../model/kinds.ts";
import type { NodeAgentConfiguration, NodeAgentConfigurationSpec } from "../model/node-agent-configuration.ts";
import { isManaged, MANAGED_BY } from "../release/managed-by-label.ts";
import type { StoredResource } from "./follow-records.ts";

const CONFIGURATION = "default";
/** The fields that the Installation sets, so that one that it no longer sets is removed; the others are the administrator's. */
const FIELDS_ANNOTATION = `${identity.operatorApiGroup}/fields`;

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
