/**
 * Every program and every command, with and without an agent, on two equal hosts:
 * the results are identical, except for random MACs. The agent runs on the host
 * itself, or in a pod.
 */
import { describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite } from "../support/plugin-site.ts";
import type { StoreKind } from "../support/test-store.ts";
import { type AgentOptions, startAgent } from "./agent.ts";
import { podOptions } from "./pod.ts";
import { NETNS_NAME, playAddresses, playAttachment, playMistakes, Runtime } from "./runtime-script.ts";

const test = testNeeding(hostProblem(), program("nft"));

const SCRIPTS = [
  { title: "a pod's attachment", script: playAttachment, codes: [0, 1] },
  { title: "addresses", script: playAddresses, codes: [0] },
  { title: "mistakes", script: playMistakes, codes: [1] },
];

async function expectSameResults({ script, codes }: (typeof SCRIPTS)[number], kind: StoreKind, options: AgentOptions) {
  await using alone = await openPluginSite(kind);
  await using site = await openPluginSite(kind);
  const agent = await startAgent(site.host, options);
  const [without, served] = [new Runtime(alone), new Runtime(site)];
  for (const { host } of [alone, site]) await host.must(["ip", "netns", "add", NETNS_NAME]);
  await Promise.all([script(without), script(served)]);

  expect(served.results).toEqual(without.results);
  expect(await agent.hasServed(served.results.length)).toEqual(
    served.results.map(({ call, exitCode }) => `${call}: exit code ${exitCode}`),
  );
  expect([...new Set(served.results.map(({ exitCode }) => exitCode))]).toEqual(codes);
  expect([await alone.left(), await site.left()]).toEqual([[], []]);
}

describe("the node agent returns the same results as the programs themselves", () => {
  for (const script of SCRIPTS) test(script.title, () => expectSameResults(script, "embedded", {}));
});

for (const { title, options } of [
  { title: "a pod with the host's processes", options: podOptions("host's processes") },
  { title: "a pod with processes of its own", options: podOptions("own processes") },
]) {
  describe(`the node agent in ${title} returns the same results as the programs on the host`, () => {
    for (const kind of ["embedded", "etcd"] as const) {
      const test = testNeeding(hostProblem(), program("nft"), kind === "etcd" ? program("etcd") : undefined);
      for (const script of SCRIPTS.slice(0, 2))
        test(`${script.title}, on ${kind}`, () => expectSameResults(script, kind, options));
    }
  });
}
