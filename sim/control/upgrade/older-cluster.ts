/** A cluster of an earlier release in the simulated API: definitions, resources with addresses of running pods, a manifest. */
import { clusterObjects } from "../../../src/kube/objects.ts";
import { FORMER_KINDS, formerDefinition } from "../../../test/support/older-cluster/former-definitions.ts";
import { layOutManifest } from "../../../test/support/older-cluster/manifest.ts";
import {
  createFormerPods,
  createFormerResources,
  FORMER_PODS,
  formerResources,
} from "../../../test/support/older-cluster/resources.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";

export const NODES = ["one", "two"];
const VERSION = "v3.26.4";
const DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

export async function layOutOlderCluster(api: SimulatedApi): Promise<void> {
  const client = api.user;
  for (const name of new Set(["default", "kube-system", ...FORMER_PODS.map(({ namespace }) => namespace)])) {
    api.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name } } as never);
  }
  for (const [index, name] of NODES.entries()) layOutNode(api, name, `192.0.2.${index + 1}`);
  for (const kind of FORMER_KINDS) {
    const definition = formerDefinition(kind) as { metadata: { name: string } };
    api.create(DEFINITIONS, definition);
    const conditions = [{ type: "Established", status: "True" }];
    api.patch(`${DEFINITIONS}/${definition.metadata.name}/status`, { status: { conditions } });
  }
  await createFormerPods(clusterObjects(client));
  await createFormerResources(client, formerResources({ release: VERSION }));
  await layOutManifest({ client }, { version: VERSION, datastore: "kubernetes", network: "own" });
}

function layOutNode(api: SimulatedApi, name: string, address: string): void {
  const labels = { "kubernetes.io/hostname": name, "kubernetes.io/os": "linux" };
  api.create("/api/v1/nodes", { apiVersion: "v1", kind: "Node", metadata: { name, labels } } as never);
  api.patch(`/api/v1/nodes/${name}/status`, {
    status: {
      addresses: [{ type: "InternalIP", address }],
      conditions: [{ type: "Ready", status: "True", reason: "KubeletReady" }],
    },
  });
}
