/** Unusual contents of calls and replies that are passed to the agent and back. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { programNames } from "../../src/bin/programs.ts";
import { identity } from "../../src/identity.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem(), program("nft"));
const PORTMAP = programNames(identity).portmap;

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

  /** There are no ports to map, so portmap returns prevResult. */
  const passOn = async (search: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
    const prevResult = { cniVersion: "1.0.0", interfaces: [], ips: [], dns: { search } };
    const servedBefore = agent.served().length;
    const { code, stdout, stderr } = await site.host.run([builtProgram(PORTMAP)], {
      stdin: JSON.stringify({ cniVersion: "1.0.0", name: "n", type: PORTMAP, prevResult }),
      environment: {
        CNI_COMMAND: "ADD",
        CNI_CONTAINERID: "c1",
        CNI_NETNS: "/run/netns/vt-none",
        CNI_IFNAME: "eth0",
        CNI_PATH: "/opt/cni/bin",
        ...environment,
      },
    });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    await pollUntil(() => agent.served().length === servedBefore + 1, "the agent to log the call");
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
});
