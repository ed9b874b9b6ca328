/** Unusual contents of calls and replies that are passed to the agent and back. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { programNames } from "../../src/bin/programs.ts";
import { POD_ANNOTATIONS } from "../../src/config/capabilities.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem(), program("nft"));
const { portmap: PORTMAP, bandwidth: BANDWIDTH } = programNames(identity);

describe("the agent receives, and its caller passes on,", () => {
  let site: PluginSite;
  let agent: Agent;
  beforeAll(async () => {
    if (hostProblem() !== undefined) return;
    site = await openPluginSite("embedded");
    agent = await startAgent(site.host);
  });
  afterAll(async () => {
    await agent?.signal("TERM");
    await agent?.ended;
    await site?.[Symbol.asyncDispose]();
  });

  /** The agent serves it. */
  const call = async (type: string, config: object, environment: Readonly<Record<string, string>> = {}) => {
    const servedBefore = agent.served().length;
    const run = await site.host.run([builtProgram(type)], {
      stdin: JSON.stringify({ cniVersion: "1.0.0", name: "n", type, ...config }),
      environment: {
        CNI_COMMAND: "ADD",
        CNI_CONTAINERID: "c1",
        CNI_NETNS: "/run/netns/vt-none",
        CNI_IFNAME: "eth0",
        CNI_PATH: "/opt/cni/bin",
        ...environment,
      },
    });
    await pollUntil(() => agent.served().length === servedBefore + 1, "the agent to log the call");
    return run;
  };
  const RESULT = { cniVersion: "1.0.0", interfaces: [], ips: [] };

  /** There are no ports to map, so portmap returns prevResult. */
  const passOn = async (search: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const prevResult = { ...RESULT, dns: { search } };
    const { code, stdout, stderr } = await call(PORTMAP, { prevResult }, environment);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout).dns.search;
  };

  for (const count of [1, 400, 40_000]) {
    test(`a config and a result with ${count} search domains`, async () => {
      const search = Array.from({ length: count }, (_, index) => `domain-${index}.example.org`);
      expect(await passOn(search)).toEqual(search);
    });
  }

  test("non-ASCII characters in the environment and in the config", async () => {
    expect(await passOn(["büro.example"], { CNI_ARGS: "IgnoreUnknown=1;K8S_POD_NAME=büro" })).toEqual(["büro.example"]);
  });

  test("as many annotations as a pod may have, 256 KiB, and a rate among them that is as long", async () => {
    const dns = { search: ["example.org"] };
    const shape = (annotations: object) =>
      call(BANDWIDTH, { prevResult: { ...RESULT, dns }, runtimeConfig: { [POD_ANNOTATIONS]: annotations } });
    const one = "a".repeat(1024 - 10);
    const many = Object.fromEntries(Array.from({ length: 256 }, (_, index) => [`key-${1000 + index}`, one]));
    const { code, stdout } = await shape(many);
    expect([code, JSON.parse(stdout).dns]).toEqual([0, dns]);

    const long = await shape({ "orchestrator.io/egress-bandwidth": `1000.${"0".repeat(250_000)}` });
    expect(JSON.parse(long.stdout)).toMatchObject({ code: 7, msg: expect.stringContaining("use at most 64") });
    expect(long.stdout.length).toBeLessThan(1000);
  });
});
