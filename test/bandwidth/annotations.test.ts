/**
 * A pod's annotations on their real path: from the CRI's sandbox config through
 * containerd into the plugin's config. containerd itself reads the kubernetes.io names;
 * the orchestrator.io names reach the plugin by the annotations capability of the entry that every installed list has.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { dirname } from "node:path";
import { BANDWIDTH_ENTRY } from "../../src/config/installed-network-list.ts";
import { type Containerd, containerdProblem, startContainerd } from "../support/containerd.ts";
import { type Host, openHost } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { anyUpstreamPlugins, installNetwork, type NetworkUnderTest } from "../support/network-under-test.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";

const problem = containerdProblem() ?? program("tc");
const testContainerd = testNeeding(problem);

describe("bandwidth plugin with containerd's CRI", () => {
  let host: Host;
  let containerd: Containerd;
  let network: NetworkUnderTest;

  beforeAll(async () => {
    if (problem !== undefined) return;
    host = await openHost();
    network = await networkOf();
    await installNetwork(host, network);
    containerd = await startContainerd(host);
  });
  afterAll(async () => {
    containerd?.[Symbol.dispose]();
    await host?.[Symbol.asyncDispose]();
  });

  const run = (name: string, annotations: Readonly<Record<string, string>>) =>
    containerd.cri.runPodSandbox({ name, namespace: "default", uid: name, cgroupParent: `/${host.name}`, annotations });
  const buckets = async () => {
    const qdiscs: readonly { kind: string; options: { rate: number; burst: number } }[] = JSON.parse(
      await host.must(["tc", "-j", "qdisc", "show"]),
    );
    const seen = qdiscs.filter(({ kind }) => kind === "tbf").map(({ options }) => [options.rate * 8, options.burst]);
    return seen.sort(([left = 0], [right = 0]) => left - right);
  };

  const NAMES = [
    ["kubernetes", "kubernetes"],
    ["orchestrator", "orchestrator"],
    ["kubernetes", "orchestrator"],
  ] as const;
  for (const [ofIngress, ofEgress] of NAMES) {
    const title = `${ofIngress}.io/ingress-bandwidth and ${ofEgress}.io/egress-bandwidth`;
    testContainerd(`shapes once by ${title}, without containerd's burst`, async () => {
      const before = await tracesOf(host, network);
      const id = await run("shaped", {
        [`${ofIngress}.io/ingress-bandwidth`]: "10M",
        [`${ofEgress}.io/egress-bandwidth`]: "20M",
      });

      expect(await buckets()).toEqual([
        [10_000_000, 125_000],
        [20_000_000, 250_000],
      ]);
      await containerd.cri.stopPodSandbox(id);
      await containerd.cri.removePodSandbox(id);
      await expectTraces(host, network, before);
    });
  }

  testContainerd("shapes nothing without annotations", async () => {
    const id = await run("free", {});
    expect(await buckets()).toEqual([]);
    await containerd.cri.stopPodSandbox(id);
    await containerd.cri.removePodSandbox(id);
  });

  testContainerd("refuses a pod with a bad annotation, naming it, and leaves nothing", async () => {
    const before = await tracesOf(host, network);
    const failing = run("bad", { "orchestrator.io/egress-bandwidth": "fast" });

    await expect(failing).rejects.toThrow('annotation "orchestrator.io/egress-bandwidth"');
    await expectTraces(host, network, before);
  });
});

async function networkOf(): Promise<NetworkUnderTest> {
  const ipam = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] };
  return {
    title: "ptp + bandwidth",
    name: "annotated",
    addressPrefixes: ["10.77.0."],
    versions: ["1.0.0"],
    collectsGarbage: false,
    pluginDirectories: [dirname(builtProgram()), await anyUpstreamPlugins()],
    conflist: (cniVersion) => ({
      cniVersion,
      name: "annotated",
      plugins: [{ type: "ptp", ipam }, BANDWIDTH_ENTRY],
    }),
    kept: async () => [],
  };
}
