/** The small runtime with real plugins: it must behave like cnitool. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, installNetwork } from "../support/network-under-test.ts";
import { type Runtime, startRuntime } from "../support/runtime-driver.ts";
import { expectTraces, type Traces, tracesOf } from "../support/traces.ts";
import { networksUnderTest } from "./networks.ts";

const POD = {
  containerId: "pod",
  netns: "/run/netns/vt-pod",
  capabilities: { portMappings: [{ hostPort: 8066, containerPort: 80, protocol: "tcp" }] },
};

describe.each(await networksUnderTest())("startRuntime() on $title", (network) => {
  let host: Host;
  let before: Traces;
  let runtime: Runtime;
  const testRuntime = testNeeding(hostProblem(), network.missing);

  beforeEach(async () => {
    if ((hostProblem() ?? network.missing) !== undefined) return;
    host = await openHost();
    await installNetwork(host, network);
    await host.must(["ip", "netns", "add", "vt-pod"]);
    before = await tracesOf(host, network);
    runtime = startRuntime({
      conflist: { ...network.conflist("1.0.0") },
      pluginDirectory: BIN_DIRECTORY,
      run: host.run,
    });
  });
  afterEach(() => host?.[Symbol.asyncDispose]());

  testRuntime("adds, checks and deletes an attachment and leaves nothing", async () => {
    const result = await runtime.add(POD);
    await runtime.check(POD);

    expect(result.ips).toHaveLength(network.addressPrefixes.length);
    expect((await tracesOf(host, network)).hostPorts).not.toEqual([]);
    await runtime.del(POD);
    await runtime.del(POD);
    await expectTraces(host, network, before);
  });

  testRuntime("reports which plugin failed, and undoes the others", async () => {
    const failure = await runtime.add({ ...POD, netns: "/run/netns/vt-none" }).catch((reason) => reason);

    expect(failure).toMatchObject({ command: "ADD", code: expect.any(Number) });
    await expectTraces(host, network, before);
  });

  testRuntime("deletes with gc what it remembers and is not valid any more", async () => {
    await runtime.add(POD);
    await runtime.gc([POD]);
    expect(runtime.cachedResult(POD)).toBeDefined();

    await runtime.gc([]);
    expect(runtime.cachedResult(POD)).toBeUndefined();
    await expectTraces(host, network, before);
  });
});
