/** Reads what `status` reports: from the orchestrator's API, and from the datastore of the network. */
import * as v from "valibot";
import { identity } from "../../identity.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { isForbidden } from "../../kube/require-ok.ts";
import { decodeShape } from "../../model/shape.ts";
import { INSTALLATION_PATH, OPERATOR_GROUP_PATH } from "../cluster/installation.ts";
import { COMPONENT_NAMESPACES } from "../cluster/installed-image.ts";
import { clusterNodes } from "../cluster/nodes.ts";
import { podState } from "../cluster/pod-state.ts";
import type { AgentPod, Condition, DatastoreState, StatusFacts, StatusPart, Workload } from "./facts.ts";

const text = v.optional(v.string(), "");
const statusShape = v.object({
  metadata: v.object({ name: v.string() }),
  status: v.optional(
    v.object({
      conditions: v.optional(
        v.array(v.object({ type: v.string(), status: v.string(), reason: text, message: text })),
        [],
      ),
    }),
    {},
  ),
});

const count = v.optional(v.number(), 0);
const workloadShape = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string() }),
  spec: v.object({
    replicas: v.optional(v.number()),
    selector: v.optional(v.object({ matchLabels: v.optional(v.record(v.string(), v.string()), {}) }), {}),
    template: v.object({ spec: v.object({ containers: v.array(v.object({ image: text })) }) }),
  }),
  status: v.optional(
    v.object({
      desiredNumberScheduled: v.optional(v.number()),
      numberReady: count,
      updatedNumberScheduled: count,
      readyReplicas: count,
      updatedReplicas: count,
    }),
    {},
  ),
});

const podShape = v.object({
  metadata: v.object({ name: v.string(), namespace: v.string() }),
  spec: v.object({ nodeName: text, containers: v.array(v.object({ image: text })) }),
  status: v.optional(v.object({ containerStatuses: v.optional(v.array(v.object({ restartCount: count })), []) }), {}),
});

export interface StatusMeans {
  readonly toolVersion: string;
  readonly datastore: DatastoreState;
  /** Gets the parts that are forbidden to who asks. Absent: such a refusal is thrown. */
  readonly unseen?: Set<StatusPart>;
}

export async function readStatusFacts(
  objects: ClusterObjects,
  { toolVersion, datastore, unseen }: StatusMeans,
): Promise<StatusFacts> {
  const { nodeAgent, controllers: controllersName, console: consoleName, operator: operatorName, product } = identity;
  const seen = async <T>(part: StatusPart, reading: Promise<T>, nothing: T): Promise<T> => {
    try {
      return await reading;
    } catch (failure) {
      if (unseen === undefined || !isForbidden(failure)) throw failure;
      unseen.add(part);
      return nothing;
    }
  };
  const [installation, statuses, operator, agents, nodes, controllers, webConsole] = await Promise.all([
    seen("installation", objects.read(INSTALLATION_PATH), undefined),
    seen("installation", objects.list(`${OPERATOR_GROUP_PATH}/${product}statuses`), []),
    seen(
      "operator",
      readWorkload(objects, `/apis/apps/v1/namespaces/${operatorName}/deployments/${operatorName}`),
      undefined,
    ),
    seen("agents", findComponent(objects, `daemonsets/${nodeAgent}`), undefined),
    seen("nodes", objects.list("/api/v1/nodes"), []),
    seen("controllers", findComponent(objects, `deployments/${controllersName}`), undefined),
    seen("controllers", findComponent(objects, `deployments/${consoleName}`), undefined),
  ]);
  const pods = agents && (await seen("agent pods", podsOf(objects, agents), []));
  const own = installation && conditionsIn(installation);
  return {
    toolVersion,
    ...(unseen === undefined ? {} : { unseen }),
    ...(own === undefined ? {} : { installation: own }),
    components: new Map(
      statuses.flatMap((item) => [conditionsIn(item) ?? []].flat()).map((each) => [each.name, each.conditions]),
    ),
    ...(operator === undefined ? {} : { operator }),
    ...(agents === undefined ? {} : { agents }),
    ...(controllers === undefined ? {} : { controllers }),
    ...(webConsole === undefined ? {} : { console: webConsole }),
    nodes: clusterNodes(nodes),
    agentPods: (pods ?? []).flatMap((item) => agentPodOf(item) ?? []),
    datastore,
  };
}

async function findComponent(objects: ClusterObjects, place: string): Promise<Workload | undefined> {
  for (const namespace of COMPONENT_NAMESPACES) {
    const found = await readWorkload(objects, `/apis/apps/v1/namespaces/${namespace}/${place}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function podsOf(objects: ClusterObjects, { namespace, selector }: Workload) {
  return objects.list(`/api/v1/namespaces/${namespace}/pods`, { labelSelector: selector });
}

async function readWorkload(objects: ClusterObjects, path: string): Promise<Workload | undefined> {
  const decoded = decodeShape(workloadShape, await objects.read(path));
  if (!decoded.ok) return undefined;
  const { metadata, spec, status } = decoded.value;
  return {
    ...metadata,
    selector: labelSelectorOf(metadata.name, spec.selector.matchLabels ?? {}),
    image: spec.template.spec.containers[0]?.image ?? "",
    desired: status.desiredNumberScheduled ?? spec.replicas ?? 0,
    ready: (status.numberReady ?? 0) + (status.readyReplicas ?? 0),
    updated: (status.updatedNumberScheduled ?? 0) + (status.updatedReplicas ?? 0),
  };
}

/** Of its pods. Earlier releases had other labels. */
function labelSelectorOf(name: string, labels: Readonly<Record<string, string>>): string {
  const terms = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return terms.length === 0 ? `app.kubernetes.io/name=${name}` : terms.join(",");
}

function conditionsIn(object: unknown): { name: string; conditions: readonly Condition[] } | undefined {
  const decoded = decodeShape(statusShape, object);
  if (!decoded.ok) return undefined;
  return { name: decoded.value.metadata.name, conditions: decoded.value.status.conditions ?? [] };
}

function agentPodOf(object: unknown): AgentPod | undefined {
  const decoded = decodeShape(podShape, object);
  const state = podState(object);
  if (!decoded.ok || state === undefined) return undefined;
  const { metadata, spec, status } = decoded.value;
  return {
    ...metadata,
    node: spec.nodeName,
    image: spec.containers[0]?.image ?? "",
    isReady: state.state === "ready",
    restarts: (status.containerStatuses ?? []).reduce((sum, { restartCount }) => sum + restartCount, 0),
    reason: state.reason,
  };
}
