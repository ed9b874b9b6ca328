/** The load of the benchmark of controllers: objects of a cluster without kubelets, and the records that plugins wrote for its pods. */
import { identity } from "../../src/identity.ts";
import { ENDPOINT, NODE } from "../../src/model/kinds.ts";
import { MACHINE_ANNOTATION } from "../../src/model/machine-annotation.ts";
import { workloadEndpointName } from "../../src/model/workload-endpoint-name.ts";
import type { KubeObject, KubeObjects, ObjectKind } from "../../test/support/kube-objects.ts";
import type { EtcdRecord } from "./etcd-records.ts";
import { runConcurrently } from "./run-concurrently.ts";

export interface LoadSize {
  readonly namespaces: number;
  readonly nodes: number;
  readonly policies: number;
  readonly pods: number;
}

const AT_ONCE = 20;
const APPLICATIONS = 20;

const namespaceOf = (index: number, { namespaces }: LoadSize) => `team-${index % namespaces}`;
const nodeOf = (index: number, { nodes }: LoadSize) => `node-${index % nodes}`;

export async function createLoad(objects: KubeObjects, size: LoadSize): Promise<void> {
  const create = (kind: ObjectKind, count: number, objectOf: (index: number) => KubeObject) =>
    runConcurrently(count, AT_ONCE, (index) => objects.apply(kind, objectOf(index)));
  await create("Namespace", size.namespaces, (index) => ({ metadata: { name: namespaceOf(index, size) } }));
  // Pods cannot be created without it.
  await create("ServiceAccount", size.namespaces, (index) => ({
    metadata: { name: "default", namespace: namespaceOf(index, size) },
  }));
  await create("Node", size.nodes, (index) => {
    const name = nodeOf(index, size);
    return { metadata: { name, labels: { zone: "a" }, annotations: machineOf(name) } };
  });
  await create("NetworkPolicy", size.policies, (index) => policyObject(index, namespaceOf(index, size)));
  await create("Pod", size.pods, (index) => podObject(index, size));
}

function podObject(index: number, size: LoadSize): KubeObject {
  const labels = { app: `app-${index % APPLICATIONS}` };
  const ports = [{ name: "http", containerPort: 8080 }];
  return {
    metadata: { name: `pod-${index}`, namespace: namespaceOf(index, size), labels },
    spec: { nodeName: nodeOf(index, size), containers: [{ name: "main", image: "none", ports }] },
  };
}

/** Allows the pods of one application to another. */
export function policyObject(number: number, namespace: string): KubeObject {
  const application = (index: number) => ({ matchLabels: { app: `app-${index % APPLICATIONS}` } });
  const ingress = [{ from: [{ podSelector: application(number + 1) }], ports: [{ port: "http" }] }];
  const spec = { podSelector: application(number), policyTypes: ["Ingress"], ingress };
  return { metadata: { name: `policy-${number}`, namespace }, spec };
}

/** The nodes, and one endpoint of each pod, without the labels of the pod: the controllers have to write every one. */
export function loadRecords(size: LoadSize): readonly EtcdRecord[] {
  const nodes = Array.from({ length: size.nodes }, (_, index) => {
    const name = `node-${index}`;
    const record = NODE.codec.make(
      { name, annotations: machineOf(name) },
      { orchRefs: [{ nodeName: name, orchestrator: "k8s" }] },
    );
    return { key: NODE.key({ name }), value: NODE.codec.write(record) };
  });
  return [...nodes, ...Array.from({ length: size.pods }, (_, index) => endpointRecord(index, size))];
}

/** By which the controllers know that the datastore belongs to the cluster. */
function machineOf(node: string): Readonly<Record<string, string>> {
  return { [MACHINE_ANNOTATION]: node };
}

function endpointRecord(index: number, size: LoadSize): EtcdRecord {
  const [pod, namespace, node] = [`pod-${index}`, namespaceOf(index, size), nodeOf(index, size)];
  const named = workloadEndpointName({ node, orchestrator: "k8s", workload: pod, endpoint: "eth0" });
  if (!named.ok) throw new Error(named.reason);
  const labels = { [`${identity.labelPrefix}namespace`]: namespace, [`${identity.labelPrefix}orchestrator`]: "k8s" };
  const record = ENDPOINT.codec.make(
    { namespace, name: named.name, labels },
    {
      ...{ orchestrator: "k8s", node, pod, endpoint: "eth0", containerID: pod, profiles: [`kns.${namespace}`] },
      ipNetworks: [`10.${64 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}/32`],
      interfaceName: `${identity.interfacePrefix}${index}`,
    },
  );
  return { key: ENDPOINT.key(record.metadata), value: ENDPOINT.codec.write(record) };
}
