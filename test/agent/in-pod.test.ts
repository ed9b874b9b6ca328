/** The node agent in a pod: which calls it serves, and which it does not. (Its results: same-results.test.ts.) */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { type Agent, launchAgent, SOCKET, startAgent } from "./agent.ts";
import { podOptions } from "./pod.ts";

const test = testNeeding(hostProblem());
const LIFE = ["ADD", "CHECK", "DEL"].map((command) => `plugin ${command}: exit code 0`);

describe("the node agent in a pod", () => {
  let site: PluginSite;
  let agent: Agent | undefined;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());
  afterEach(async () => {
    await agent?.signal("KILL");
    await agent?.ended;
    agent = undefined;
  });

  const live = async () => {
    const pod = await site.makePod();
    const prevResult = await site.add(pod);
    await site.quietly("CHECK", pod, { config: site.config({ prevResult }) });
    await site.quietly("DEL", pod);
    expect(await site.left()).toEqual([]);
  };
  const namespaceOf = (pid: number, name: string) => readlinkSync(site.host.view(`/proc/${pid}/ns/${name}`));

  for (const processes of ["host's processes", "own processes"] as const) {
    test(`serves calls from the host, with ${processes}`, async () => {
      agent = await startAgent(site.host, podOptions(processes));
      await live();

      expect(await agent.hasServed(3)).toEqual(LIFE);
    });
  }

  test("runs in the host's mount, network and UTS namespaces", async () => {
    agent = await startAgent(site.host, podOptions("host's processes"));
    const isHosts = (pid: number) =>
      ["mnt", "net", "uts"].map((name) => namespaceOf(pid, name) === namespaceOf(1, name));

    expect(isHosts(agent.server.pid)).toEqual([true, true, true]);
    expect(isHosts(agent.pid)).toEqual([true, true, true]);
  });

  /** `unshare` waits for the first process of a new PID namespace. */
  const firstProcessIn = (processes: "host's processes" | "own processes", pid: number) =>
    processes === "host's processes"
      ? pid
      : Number(readFileSync(site.host.view(`/proc/${pid}/task/${pid}/children`), "utf8").trim());

  for (const processes of ["host's processes", "own processes"] as const) {
    test(`exits with 0 if it is stopped, and removes its socket from the host, with ${processes}`, async () => {
      const agent = await startAgent(site.host, podOptions(processes));
      expect(existsSync(site.host.view(SOCKET))).toBe(true);
      await site.host.must(["kill", "-TERM", String(firstProcessIn(processes, agent.pid))]);

      expect(await agent.ended).toBe(0);
      expect(existsSync(site.host.view(SOCKET))).toBe(false);
    });
  }

  test("refuses to start if the host has an agent, which continues serving", async () => {
    agent = await startAgent(site.host);
    const second = launchAgent(site.host, podOptions("host's processes"));

    expect(await second.ended).toBe(1);
    expect(second.log()).toMatch(/Cannot start: another agent serves this host/);
    await live();
    expect(await agent.hasServed(3)).toEqual(LIFE);
  });

  test("serves no calls without --host-namespaces, although its socket is there", async () => {
    const hostFolders = [dirname(SOCKET)];
    agent = await startAgent(site.host, podOptions("host's processes", { hostNamespaces: undefined, hostFolders }));
    expect(existsSync(site.host.view(SOCKET))).toBe(true);
    await live();

    expect(agent.served()).toEqual([]);
  });

  test("refuses to start if the host's namespaces cannot be found, and the plugins work without it", async () => {
    const refused = launchAgent(site.host, podOptions("host's processes", { hostNamespaces: "/nowhere/ns" }));

    expect(await refused.ended).toBe(1);
    expect(refused.log()).toMatch(/Cannot start: Cannot open namespace "\/nowhere\/ns\/mnt"/);
    await live();
  });
});
