/** A flow for tests: a pod asks a database on another node, and a rule denies it. */
import type { FlowRecord } from "../../../flows/flow-record.ts";

export function sampleFlow(differences: Partial<FlowRecord> = {}): FlowRecord {
  return {
    id: "node-2/1",
    node: "node-2",
    family: 4,
    protocol: 6,
    source: {
      ...{ kind: "pod", address: "10.0.0.1", port: 40_000, namespace: "shop", name: "web-1", node: "node-1" },
      owner: { kind: "Deployment", name: "web" },
      labels: { app: "web" },
    },
    destination: { kind: "pod", address: "10.0.0.2", port: 5432, namespace: "shop", name: "db-0", node: "node-2" },
    direction: "ingress",
    verdict: "denied",
    decisions: [{ point: "workload ingress", verdict: "deny", rule: "shop/db ingress 0" }],
    state: "denied",
    start: 1_000_000,
    end: 1_000_000,
    sent: { packets: 1, bytes: 60 },
    received: { packets: 0, bytes: 0 },
    ...differences,
  };
}
