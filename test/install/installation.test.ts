/**
 * An administrator writes one resource and gets the whole network, changes it, and removes it: on two real nodes, from
 * nothing, with the commands of docs/install.md.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { identity } from "../../src/identity.ts";
import { bareClusterProblem, openBareCluster, POD_RANGES } from "../support/bare-cluster.ts";
import { browserProblem } from "../support/browser.ts";
import type { Host } from "../support/host.ts";
import { addressesOf } from "../support/kube-pods.ts";
import { testNeeding } from "../support/needs.ts";
import { untilInstalled } from "../support/operator-install.ts";
import { pollUntil } from "../support/poll.ts";
import { loadImageOnPage, openInstallPage, typeOnPage, unknownMakeTargets } from "./install-page.ts";
import { installedConsoleTests } from "./installed-console-tests.ts";
import { installedFlowsTests } from "./installed-flows.ts";
import {
  expectNothingLeft,
  expectPermitted,
  expectServed,
  type InstalledCluster,
  installedCluster,
  installedTests,
  startPods,
} from "./installed-tests.ts";

const problem = bareClusterProblem();
const page = openInstallPage();
const testCluster = testNeeding(problem);
setDefaultTimeout(240_000);

const NEW_POOL = "10.245.0.0/24";
const MTU = 1380;
const TIMEOUT_SECONDS = 8;

interface NodeProcess {
  readonly host: Host;
  readonly pid: string;
}

describe("an Installation", () => {
  let installed: InstalledCluster;
  beforeAll(async () => {
    if (problem !== undefined) return;
    installed = installedCluster(await openBareCluster());
  });
  afterAll(() => installed?.[Symbol.asyncDispose]());

  const kubectl = (...args: readonly string[]) => installed.server.kubectl(args);
  /** Changes fields of the network, and waits until every node has them. */
  const change = async (network: object) => {
    const patch = JSON.stringify({ spec: { [`${identity.product}Network`]: network } });
    await kubectl("patch", "installation/default", "--type=merge", `--patch=${patch}`);
    await untilInstalled(installed.server);
  };
  const type = (title: string) => typeOnPage(page, title, installed);
  /** How long the kubelet has needed to start the container of a new pod. */
  const startSeconds = async (name: string) => {
    await installed.pods.create({ name, spec: { nodeName: "node-2" } });
    const { status } = await installed.pods.ready(name);
    const started = status.containerStatuses?.[0]?.state?.running?.startedAt ?? "";
    return (Date.parse(started) - Date.parse(status.startTime ?? "")) / 1000;
  };

  const processesOf = async (program: string): Promise<readonly NodeProcess[]> => {
    const found = installed.nodes.map(async ({ host }) => {
      const lines = (await host.must(["ps", "-e", "-o", "pid=,args="]))
        .split("\n")
        .map((line) => line.trim().split(" "));
      return lines.flatMap(([pid = "", ...args]) => (args.join(" ") === program ? [{ host, pid }] : []));
    });
    return (await Promise.all(found)).flat();
  };

  testCluster("uses the image that the page builds and loads", async () => {
    const { nodes, image } = installed;
    expect(unknownMakeTargets()).toEqual([]);
    for (const node of nodes.slice(0, 1)) await loadImageOnPage(page, node, image);
  });

  testCluster("makes the nodes Ready", async () => {
    expect(await type("With the operator")).toContain("condition met");
    await startPods(installed);
  });

  installedTests(testCluster, () => installed);

  testCluster("is well, as the admin tool says, and runs a pod", async () => {
    await expectServed(installed);
    await type("Check it");
    expect(await type("Run a pod")).toMatch(/^web +1\/1 +Running .* 10\.244\.\d+\.\d+ /m);
  });

  testCluster("has controllers and an operator that the kernel can end, and that start again", async () => {
    for (const program of [identity.controllers, identity.operator]) {
      const before = await processesOf(program);
      expect(before).not.toEqual([]);
      // As when one hangs: the first process of a PID namespace would ignore the signal.
      for (const { host, pid } of before) await host.must(["kill", "-ALRM", pid]);

      const isNew = async () => {
        const after = await processesOf(program);
        const isFormer = (one: NodeProcess) => before.some(({ host, pid }) => host === one.host && pid === one.pid);
        return after.length === before.length && !after.some(isFormer);
      };
      await pollUntil(isNew, `${program} to start again`, 60_000);
    }
  });

  testCluster("adds a pool, which pods use", async () => {
    await change({ ipPools: [...POD_RANGES.map((cidr) => ({ cidr })), { name: "more", cidr: NEW_POOL }] });
    const annotations = { [`cni.${identity.apiGroup}/ipv4pools`]: '["more"]' };
    await installed.pods.create({ name: "more", annotations });
    expect(addressesOf(await installed.pods.ready("more"))[0]).toStartWith("10.245.0.");
  });

  testCluster("changes the MTU of new pods, and how long their containers wait for the rules of policies", async () => {
    expect(await type("Change it")).toContain("patched");
    await change({ mtu: MTU, linuxPolicySetupTimeoutSeconds: TIMEOUT_SECONDS });
    expect(await startSeconds("enforced")).toBeLessThan(TIMEOUT_SECONDS);
    expect((await installed.pods.exec("enforced", "cat", "/sys/class/net/eth0/mtu")).trim()).toBe(String(MTU));

    // The agent does not write the rules of the next pod.
    const host = installed.nodes[1]?.host ?? installed.host;
    const processes = await host.must(["ps", "-C", identity.nodeAgent, "-o", "pid=", "--sort=start_time"]);
    const agent = processes.trim().split(/\s+/)[0] ?? "";
    await host.must(["kill", "-STOP", agent]);
    try {
      expect(await startSeconds("unenforced")).toBeGreaterThanOrEqual(TIMEOUT_SECONDS - 1);
    } finally {
      await host.must(["kill", "-CONT", agent]);
    }
  });

  installedFlowsTests(testCluster, () => installed);
  installedConsoleTests(testNeeding(problem, browserProblem), () => installed);

  testCluster("leaves nothing on the nodes when it is deleted, and keeps the pools", async () => {
    await installed.pods.removeAll();
    await type("Remove it");
    await expectNothingLeft(installed);
    expectPermitted(installed);
    expect(await kubectl("get", `ippools.${identity.apiGroup}`)).toContain(NEW_POOL);
  });
});
