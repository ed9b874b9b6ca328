/** Reads what the migration of host endpoints is planned from. */
import * as v from "valibot";
import type { Datastore } from "../../../datastore/datastore.ts";
import { readAllEntries } from "../../../datastore/pages.ts";
import { readEach } from "../../../datastore/read-each.ts";
import { PluginError } from "../../../errors.ts";
import type { ClusterObjects } from "../../../kube/objects.ts";
import type { HostEndpoint } from "../../../model/host-endpoint.ts";
import { BGP_PEER, HOST_ENDPOINT, KUBE_CONTROLLERS_CONFIGURATION, NODE, POOL } from "../../../model/kinds.ts";
import type { KubeControllersConfiguration } from "../../../model/kube-controllers-configuration.ts";
import type { Node } from "../../../model/node.ts";
import { decodeShape } from "../../../model/shape.ts";
import { readPolicy } from "../../../policy/read-resources.ts";
import type { NodeSelecting, Scheduled } from "./affected-selectors.ts";
import { syncsLabels } from "./automatic-creation.ts";
import { labelTarget } from "./copied-labels.ts";
import type { Hosts } from "./migration.ts";

export const CONFIGURATION_KEY = KUBE_CONTROLLERS_CONFIGURATION.key({ name: "default" });

export interface ReadHosts extends Hosts {
  readonly configuration: KubeControllersConfiguration | undefined;
}

export async function readHosts(store: Datastore, isEtcd: boolean): Promise<ReadHosts> {
  const { resources, nodes, configurations, unreadable } = await readPolicy(store);
  const endpoint = unreadable.find(({ key }) => key.startsWith(HOST_ENDPOINT.prefix()));
  if (endpoint !== undefined) {
    throw new PluginError("resource-invalid", `Cannot tell which hosts are protected: ${endpoint.failure.message}`);
  }
  const { answers } = await store.read([{ kind: "key", key: CONFIGURATION_KEY }]);
  const value = answers[0]?.[0]?.value;
  const configuration =
    value === undefined ? undefined : KUBE_CONTROLLERS_CONFIGURATION.codec.read(value, CONFIGURATION_KEY);
  const sync = { isEtcd, syncsLabels: syncsLabels(configuration?.spec) };
  return { ...{ nodes, resources, configurations, configuration }, targetOf: (node) => labelTarget(node, sync) };
}

/** For repeated looks: without policies and pods. */
export async function readEndpoints(
  store: Datastore,
): Promise<{ readonly nodes: readonly Node[]; readonly hostEndpoints: readonly HostEndpoint[] }> {
  const nodes = await readAllEntries(store, NODE.prefix());
  const endpoints = await readAllEntries(store, HOST_ENDPOINT.prefix());
  return {
    nodes: readEach(nodes, ({ key, value }) => NODE.codec.read(value, key)).readable,
    hostEndpoints: readEach(endpoints, ({ key, value }) => HOST_ENDPOINT.codec.read(value, key)).readable,
  };
}

export async function readNodeSelecting(objects: ClusterObjects, store: Datastore): Promise<NodeSelecting> {
  const pools = await readAllEntries(store, POOL.prefix());
  const peers = await readAllEntries(store, BGP_PEER.prefix());
  const scheduled: Scheduled[] = [];
  for (const { kind, path } of SCHEDULED) {
    scheduled.push(...(await objects.list(path)).flatMap((item) => scheduledIn(kind, item)));
  }
  return {
    pools: readEach(pools, ({ key, value }) => POOL.codec.read(value, key)).readable,
    peers: readEach(peers, ({ key, value }) => BGP_PEER.codec.read(value, key)).readable,
    scheduled,
  };
}

const SCHEDULED = [
  { kind: "DaemonSet", path: "/apis/apps/v1/daemonsets" },
  { kind: "Deployment", path: "/apis/apps/v1/deployments" },
  { kind: "StatefulSet", path: "/apis/apps/v1/statefulsets" },
  { kind: "CronJob", path: "/apis/batch/v1/cronjobs" },
  { kind: "Pod", path: "/api/v1/pods" },
] as const;

const expressions = v.optional(
  v.array(v.object({ key: v.string(), operator: v.string(), values: v.optional(v.array(v.string()), []) })),
  [],
);
const podSpec = v.object({
  nodeSelector: v.optional(v.record(v.string(), v.string()), {}),
  affinity: v.optional(
    v.object({
      nodeAffinity: v.optional(
        v.object({
          requiredDuringSchedulingIgnoredDuringExecution: v.optional(
            v.object({
              nodeSelectorTerms: v.optional(
                v.array(v.object({ matchExpressions: expressions, matchFields: expressions })),
                [],
              ),
            }),
            {},
          ),
        }),
        {},
      ),
    }),
    {},
  ),
});
const template = v.object({ spec: podSpec });
const scheduledShape = v.object({
  metadata: v.object({
    name: v.string(),
    namespace: v.string(),
    ownerReferences: v.optional(v.array(v.unknown()), []),
  }),
  spec: v.union([
    v.pipe(
      v.object({ template }),
      v.transform((spec) => spec.template.spec),
    ),
    v.pipe(
      v.object({ jobTemplate: v.object({ spec: v.object({ template }) }) }),
      v.transform((spec) => spec.jobTemplate.spec.template.spec),
    ),
    podSpec,
  ]),
});

/** None if its pods may run anywhere; pods are described by what controls them. */
function scheduledIn(kind: string, item: unknown): readonly Scheduled[] {
  const decoded = decodeShape(scheduledShape, item);
  if (!decoded.ok) return [];
  const { metadata, spec } = decoded.value;
  if (kind === "Pod" && metadata.ownerReferences.length > 0) return [];
  const { nodeSelectorTerms = [] } = spec.affinity.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? {};
  const terms = nodeSelectorTerms.map((term) => ({ expressions: term.matchExpressions, fields: term.matchFields }));
  if (Object.keys(spec.nodeSelector).length + terms.length === 0) return [];
  return [{ title: `${kind} ${metadata.namespace}/${metadata.name}`, nodeSelector: spec.nodeSelector, terms }];
}
