/** containerd uses every network under test: `ctr --cni`, and the CRI as the kubelet does. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { fetchFromHost, pingEach } from "../support/connectivity.ts";
import { type Containerd, containerdProblem, startContainerd } from "../support/containerd.ts";
import type { PodSandbox } from "../support/cri.ts";
import { type Host, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, installNetwork } from "../support/network-under-test.ts";
import { startRuntime } from "../support/runtime-driver.ts";
import { expectTraces, tracesOf } from "../support/traces.ts";
import { networksUnderTest } from "./networks.ts";

const SERVE = ["/bin/httpd", "-p", "80", "-h", "/www"];

describe.each(await networksUnderTest())("containerd on $title", (network) => {
  let host: Host;
  let containerd: Containerd;
  const testContainerd = testNeeding(containerdProblem(), network.missing);

  beforeAll(async () => {
    if ((containerdProblem() ?? network.missing) !== undefined) return;
    host = await openHost();
    await installNetwork(host, network);
    containerd = await startContainerd(host);
  });
  afterAll(async () => {
    containerd?.[Symbol.dispose]();
    await host?.[Symbol.asyncDispose]();
  });

  const pod = (name: string, more: Partial<PodSandbox> = {}): PodSandbox => ({
    name,
    namespace: "default",
    uid: `uid-of-${name}`,
    cgroupParent: `/${host.name}`,
    ...more,
  });

  testContainerd("runs a container with ctr --cni to its end and leaves nothing", async () => {
    const before = await tracesOf(host, network);
    const seen = await containerd.runOnce("once", ["/bin/ip", "-o", "addr", "show", "dev", "eth0"]);

    for (const prefix of network.addressPrefixes) expect(seen).toContain(` ${prefix}`);
    await expectTraces(host, network, before);
  });

  const repaired = network.collectsGarbage ? ", and repairs it by GC" : "";
  testContainerd(`runs a detached container with ctr --cni, which never calls DEL${repaired}`, async () => {
    const before = await tracesOf(host, network);
    await containerd.runDetached("detached", ["/bin/sleep", "1000"]);
    const seen = await containerd.exec("detached", ["/bin/ip", "-o", "addr", "show", "dev", "eth0"]);
    await containerd.remove("detached");

    for (const prefix of network.addressPrefixes) expect(seen).toContain(` ${prefix}`);
    expect((await network.kept(host)).length).toBeGreaterThan(before.kept.length);
    if (!network.collectsGarbage) return;

    const conflist = { ...network.conflist("1.1.0") };
    await startRuntime({ conflist, pluginDirectory: BIN_DIRECTORY, run: host.run }).gc([]);
    // Removing libcni's cached result is up to the client.
    await host.must(["sh", "-c", "rm /var/lib/cni/results/*-detached-eth0"]);
    await expectTraces(host, network, before);
  });

  testContainerd("runs pods that reach each other, are stopped and removed twice, and leave nothing", async () => {
    const before = await tracesOf(host, network);
    const ids = await Promise.all([containerd.cri.runPodSandbox(pod("a")), containerd.cri.runPodSandbox(pod("b"))]);
    const statuses = await Promise.all(ids.map((id) => containerd.cri.podSandboxStatus(id)));

    expect(statuses.map(({ ready, addresses }) => ({ ready, families: addresses.length }))).toEqual(
      ids.map(() => ({ ready: true, families: network.addressPrefixes.length })),
    );
    await pingEach((command) => containerd.execInSandbox(ids[0], command), statuses[1]?.addresses ?? []);
    await pingEach((command) => containerd.execInSandbox(ids[1], command), statuses[0]?.addresses ?? []);

    for (const id of [...ids, ...ids]) await containerd.cri.stopPodSandbox(id);
    for (const id of [...ids, ...ids]) await containerd.cri.removePodSandbox(id);
    await expectTraces(host, network, before);
  });

  testContainerd("maps a pod's host port and shapes it by its annotations", async () => {
    const before = await tracesOf(host, network);
    const id = await containerd.cri.runPodSandbox(
      pod("mapped", {
        portMappings: [{ protocol: "TCP", containerPort: 80, hostPort: 8099 }],
        annotations: { "kubernetes.io/ingress-bandwidth": "10M", "kubernetes.io/egress-bandwidth": "20M" },
      }),
    );
    await containerd.execInSandbox(id, SERVE);

    expect(await fetchFromHost(host, "127.0.0.1", 8099)).toBe("hello\n");
    const shapers = (await host.must(["tc", "qdisc", "show"])).match(/rate \d+\w+/g)?.sort();
    expect(shapers).toEqual(["rate 10Mbit", "rate 20Mbit"]);

    await containerd.cri.stopPodSandbox(id);
    await containerd.cri.removePodSandbox(id);
    await expectTraces(host, network, before);
  });

  if (network.served === undefined) return;
  testContainerd("had its CRI calls served by the node agent", () => {
    const served = network.served?.(host) ?? [];

    for (const program of ["plugin", "portmap", "bandwidth"]) {
      for (const command of ["ADD", "DEL"]) expect(served).toContain(`${program} ${command}: exit code 0`);
    }
  });
});
