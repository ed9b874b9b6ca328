/** The examples of docs/policy.md and docs/http-rules.md: the built tool accepts the resources, and explains the host endpoint as the page says. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { nodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import { limitsOfOne, policyLimits } from "../../src/policy/policy-size.ts";
import { builtProgram, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const [page = "", httpRules = ""] = ["policy.md", "http-rules.md"].map((file) =>
  readFileSync(join(import.meta.dir, "../../docs", file), "utf8"),
);
const examplesOf = (text: string) => [...text.matchAll(/^```yaml\n([\s\S]*?)^```$/gm)].map(([, yaml = ""]) => yaml);

test("the page about policy names the limits of a policy and of a namespace", () => {
  const ofNamespace = policyLimits(nodeAgentSettings([], ""));
  for (const kind of ["lists", "rules"] as const) {
    const limits = [limitsOfOne(ofNamespace), ofNamespace].map((size) => size[kind].toLocaleString("en"));
    expect(page).toContain(`| ${limits.join(" | ")} |`);
  }
});

describe("the examples of the page about policy", () => {
  const directory = temporaryDirectory("policy-page");
  afterAll(() => directory.remove());
  const env = {
    ...{ DATASTORE_TYPE: "embedded", DATASTORE_PATH: join(directory.path, "store.db") },
    [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory.path,
  };
  const run = (words: string, stdin = "") =>
    runPlugin(builtProgram(identity.adminTool), { args: words.split(" "), env, stdin });

  beforeAll(async () => {
    await run("datastore init");
  });

  test("are accepted", async () => {
    expect(examplesOf(page).length).toBeGreaterThan(1);
    expect(examplesOf(httpRules)).not.toEqual([]);
    for (const example of [...examplesOf(page), ...examplesOf(httpRules)]) {
      const { exitCode, stderr } = await run("apply -f -", example);
      // Notes: there are no workloads and no nodes.
      const others = stderr.split("\n").filter((line) => line !== "" && !line.startsWith("note: "));
      expect({ exitCode, others }).toEqual({ exitCode: 0, others: [] });
    }
  });

  test("of a staged policy is promoted as the page shows", async () => {
    const [, shown = ""] = /^```\n(\$ \S+ policy promote [\s\S]*?)^```$/m.exec(page) ?? [];
    const calls = shown.split(/^\$ \S+ /m).slice(1);

    expect(calls.length).toBe(2);
    for (const call of calls) {
      const [words = "", ...expected] = call.split("\n");
      const { stdout, stderr } = await run(words);
      const others = stderr.split("\n").filter((line) => !line.startsWith("note: "));
      // No agent records flows here, and there is no workload to select.
      const preview = stdout.replace(/^(?:Note: {3}.*\n)+\n/m, "");
      expect(`${preview}${others.join("\n")}`).toBe(expected.join("\n"));
    }
  });

  test("of a host endpoint is explained as the page shows", async () => {
    const [, words = "", expected = ""] =
      /^\$ \S+ (policy explain \S.* hostendpoint\/.*)\n([\s\S]*?)^```$/m.exec(page) ?? [];

    expect((await run(words)).stdout).toBe(expected);
  });
});
