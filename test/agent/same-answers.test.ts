/**
 * Every program and every command, with an agent and without one, on two hosts
 * that are alike: the answers are the same to the letter, but for the MACs that
 * the kernel draws by lot. The agent runs on the host itself, or in a pod.
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

const PLAYS = [
  { title: "a pod's attachment", play: playAttachment, codes: [0, 1] },
  { title: "addresses", play: playAddresses, codes: [0] },
  { title: "mistakes", play: playMistakes, codes: [1] },
];

async function expectSameAnswers({ play, codes }: (typeof PLAYS)[number], kind: StoreKind, options: AgentOptions) {
  await using alone = await openPluginSite(kind);
  await using site = await openPluginSite(kind);
  const agent = await startAgent(site.host, options);
  const [without, served] = [new Runtime(alone), new Runtime(site)];
  for (const { host } of [alone, site]) await host.must(["ip", "netns", "add", NETNS_NAME]);
  await Promise.all([play(without), play(served)]);

  expect(served.told).toEqual(without.told);
  expect(await agent.hasServed(served.told.length)).toEqual(
    served.told.map(({ call, exitCode }) => `${call}: exit code ${exitCode}`),
  );
  expect([...new Set(served.told.map(({ exitCode }) => exitCode))]).toEqual(codes);
  expect([await alone.left(), await site.left()]).toEqual([[], []]);
}

describe("the node agent answers as the programs themselves do", () => {
  for (const play of PLAYS) test(play.title, () => expectSameAnswers(play, "embedded", {}));
});

for (const { title, options } of [
  { title: "a pod with the host's processes", options: podOptions("host's processes") },
  { title: "a pod with processes of its own", options: podOptions("own processes") },
]) {
  describe(`the node agent in ${title} answers as the programs on the host do`, () => {
    for (const kind of ["embedded", "etcd"] as const) {
      const test = testNeeding(hostProblem(), program("nft"), kind === "etcd" ? program("etcd") : undefined);
      for (const play of PLAYS.slice(0, 2))
        test(`${play.title}, on ${kind}`, () => expectSameAnswers(play, kind, options));
    }
  });
}
