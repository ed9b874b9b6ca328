/**
 * The node agent as a pod of the product's image on a real kubelet: it serves the calls of the plugins on the host, and
 * runs BIRD of the image. The programs of the plugins write down every call that the runtime makes.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { csiDriverObject } from "../support/csi.ts";
import type { KubeNode } from "../support/kube-node.ts";
import { openProductControlPlane, type ProductControlPlane, productClusterProblem } from "../support/kube-product.ts";
import { program, testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY } from "../support/network-under-test.ts";
import { NAMESPACE, type Pods, podsOn } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import { productImage, productImageProblem } from "../support/product-image.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { VOLUME_MOUNT, volumePodSpec } from "./volume-tests.ts";

const problem =
  productClusterProblem() ??
  productImageProblem() ??
  program("bird") ??
  proofSize({ everyDay: "only in `make soak`", soak: undefined });
const testPod = testNeeding(problem);
setDefaultTimeout(180_000);

const ROUNDS = 4;
const PODS = 5;
const PLUGINS = [identity.product, "portmap", "bandwidth"];
const CALLS = "/run/cni-calls";
const METRICS_PORT = 9091;
const RUN_DIRECTORY = identity.runDirectory.replace(/^\/var\/run\//, "/run/");

describe("the node agent as a pod", () => {
  let cluster: ProductControlPlane;
  let node: KubeNode;
  let pods: Pods;
  beforeAll(async () => {
    if (problem !== undefined) return;
    const image = await productImage();
    cluster = await openProductControlPlane({ datastore: "kubernetes", families: "IPv4" });
    node = await cluster.addNode("node-1", [image.archive]);
    // Whatever runs as BIRD is the image's.
    await node.host.must(["mount", "--bind", "/dev/null", Bun.which("bird") ?? ""]);
    for (const plugin of PLUGINS) noteCalls(node, plugin);
    await apply("NodeAgentConfiguration", "default", { prometheusMetricsEnabled: true });
    await cluster.server.createNamespace(NAMESPACE);
    pods = podsOn(cluster.server);
    await startAgentPod(image.name);
  });
  afterAll(() => cluster?.[Symbol.asyncDispose]());

  const apply = (kind: string, name: string, spec: object) =>
    cluster.adminOn(
      node,
      ["apply", "-f", "-"],
      JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name }, spec }),
    );

  const startAgentPod = async (image: string) => {
    await cluster.server.apply(JSON.stringify(agentPod(image, cluster.server.url)));
    const log = () => cluster.server.kubectl(["logs", identity.nodeAgent, "--namespace=kube-system"]);
    await pollUntil(async () => (await log()).includes("serves the plugins' calls"), "the agent's pod", 60_000);
    await pollUntil(async () => (await metrics()).includes("endpoints"), "the agent's metrics", 60_000);
  };

  const metrics = () => node.host.must(["curl", "-sf", `http://127.0.0.1:${METRICS_PORT}/metrics`]);

  testPod("serves the calls that the runtime makes for pods that start and end", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      await pods.create(...Array.from({ length: PODS }, (_, index) => ({ name: `pod-${round}-${index}` })));
      await pods.allReady(PODS);
      await pods.removeAll();
    }

    // DEL is repeated until the sandbox is gone, and the counts are written a moment after a call.
    let [made, served]: readonly [Counts, Counts] = [new Map(), new Map()];
    const areEqual = async () => {
      [made, served] = [callsMade(node), servedIn(await metrics())];
      return Bun.deepEquals(made, served);
    };
    await pollUntil(areEqual, "the counts of calls", 10_000).catch(() => {});
    console.log(`calls of the runtime: ${sumOf(made)}, served by the agent in a pod: ${sumOf(served)}`);
    for (const plugin of PLUGINS) {
      for (const command of ["ADD", "DEL"]) {
        expect(made.get(`${plugin} ${command}`)).toBeGreaterThanOrEqual(ROUNDS * PODS);
      }
    }
    // If the agent has not greeted it within a second, on a loaded machine, a plugin does its call itself.
    expect(sumOf(served) / sumOf(made)).toBeGreaterThan(0.9);
  });

  testPod("mounts the volume of a sidecar in the host's namespace, without any directory of the host", async () => {
    await cluster.server.apply(JSON.stringify(csiDriverObject()));
    await pods.create({ name: "mounted", spec: volumePodSpec({}) });
    const { metadata } = await pods.ready("mounted");
    node.host.writeFile(`${RUN_DIRECTORY}/sidecars/${metadata.uid}/greeting`, "hello");
    expect(await pods.exec("mounted", "cat", `${VOLUME_MOUNT}/greeting`)).toBe("hello");
    await pods.removeAll();
    expect(readdirSync(node.host.view(`${RUN_DIRECTORY}/sidecars`))).toEqual([]);
  });

  testPod("runs BIRD of the image, which ends with the pod", async () => {
    await apply("BGPPeer", "router", { peerIP: "10.199.0.200", asNumber: 65000 });
    const status = async () =>
      (await node.host.run([join(BIN_DIRECTORY, identity.adminTool), "node", "status"])).stdout;
    await pollUntil(async () => /BIRD 2\S+ is running/.test(await status()), "BIRD").catch(async (error) => {
      throw new Error(`${error.message}: ${await status()}`);
    });
    const pid = Number(readFileSync(node.host.view(`${RUN_DIRECTORY}/bird/bird.pid`), "utf8"));
    const process = node.host.view(`/proc/${pid}`);
    expect(readFileSync(join(process, "comm"), "utf8")).toBe("bird\n");

    await cluster.server.kubectl(["delete", "pod", identity.nodeAgent, "--namespace=kube-system"]);
    await pollUntil(() => !existsSync(process), "BIRD to end");
  });
});

/** The program is started by a script that writes the call down. */
function noteCalls({ host }: KubeNode, plugin: string): void {
  const path = join(BIN_DIRECTORY, plugin);
  rmSync(host.view(path));
  const note = `if [ "$CNI_COMMAND" != VERSION ]; then echo "${plugin} $CNI_COMMAND" >> ${CALLS}; fi`;
  host.writeFile(path, `#!/bin/sh\n${note}\nexec ${builtProgram(plugin)} "$@"\n`);
  chmodSync(host.view(path), 0o755);
}

type Counts = ReadonlyMap<string, number>;

function callsMade({ host }: KubeNode): Counts {
  const counts = new Map<string, number>();
  const calls = readFileSync(host.view(CALLS), "utf8").trim().split("\n");
  for (const call of calls) counts.set(call, (counts.get(call) ?? 0) + 1);
  return counts;
}

function servedIn(metrics: string): Counts {
  const counts = new Map<string, number>();
  const rows = metrics.matchAll(/_served_calls_total\{plugin="(.*)",command="(.*)",result=".*"\} (\d+)/g);
  for (const [, plugin, command, count] of rows) {
    const call = `${plugin} ${command}`;
    counts.set(call, (counts.get(call) ?? 0) + Number(count));
  }
  return counts;
}

function sumOf(counts: Counts): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}

/** As a DaemonSet would start it: without a single directory of the host. */
function agentPod(image: string, apiServer: string): object {
  const { hostname, port } = new URL(apiServer);
  const variables = { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port };
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: identity.nodeAgent, namespace: "kube-system" },
    spec: {
      nodeName: "node-1",
      hostNetwork: true,
      hostPID: true,
      serviceAccountName: identity.product,
      terminationGracePeriodSeconds: 5,
      tolerations: [{ operator: "Exists" }],
      containers: [
        {
          name: identity.nodeAgent,
          image,
          imagePullPolicy: "Never",
          command: [identity.nodeAgent, "--host-namespaces", "/proc/1/ns"],
          env: Object.entries(variables).map(([name, value]) => ({ name, value })),
          securityContext: { privileged: true },
        },
      ],
    },
  };
}
