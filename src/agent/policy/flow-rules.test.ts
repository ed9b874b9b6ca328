import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { pollUntil } from "../../../test/support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { readLabel } from "../../flows/rule-label.ts";
import { nodeAgentConfiguration, nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { TableFlowRules } from "./flow-rules.ts";

const POINT = "workload ingress";
const SETTINGS = nodeAgentSettings([nodeAgentConfiguration.make({ name: "default" }, { flows: "Enabled" })], "here");

describe("TableFlowRules, of which nothing is known but the kernel", () => {
  let folder: TemporaryDirectory;
  let rules: TableFlowRules;
  /** What happened, in order. */
  let seen: string[];
  let elapsed = 0;
  beforeEach(() => {
    folder = temporaryDirectory("flowrules");
    seen = [];
  });
  afterEach(() => {
    rules.close();
    folder.remove();
  });

  const open = (highestInKernel: () => Iterator<undefined, number>) =>
    new TableFlowRules({
      ...{ path: join(folder.path, "numbers"), labelProblem: undefined, highestInKernel },
      ...{ settings: () => SETTINGS, isSettled: () => true, counts: () => [] },
      labelled: () => ({ all: new Set(), forSidecars: new Set() }),
      renewLabels: () => seen.push(`renewed: ${numberOf("a")}`),
      report: (message) => seen.push(message),
      clock: { elapsed: () => elapsed, now: () => new Date(5_000) },
    });
  const numberOf = (comment: string) => {
    const label = rules.labelOf(POINT, comment);
    if (label === undefined) return "none";
    const field = readLabel(label, POINT);
    return field.kind === "rule" ? field.number : field.kind;
  };

  test("waits for a short look at the connection table", () => {
    rules = open(function* () {
      yield undefined;
      return 7;
    });

    expect(numberOf("a")).toBe(8);
  });

  test("a long one goes on in steps between other work, and rules have labels after it", async () => {
    let steps = 0;
    const total = 50;
    rules = open(function* () {
      for (; steps < total; steps++) {
        elapsed += 10;
        yield undefined;
      }
      return 7;
    });

    expect(numberOf("a")).toBe("none");
    expect(steps).toBeLessThan(3);
    rules.applied();
    rules.labelMore();
    expect([seen, rules.labelsSince]).toEqual([[], undefined]);
    const atTurns: number[] = [];
    await pollUntil(() => atTurns.push(steps) > 0 && steps === total, "the look to end");
    expect(atTurns.length).toBeGreaterThan(1);
    await pollUntil(() => {
      rules.labelMore();
      return seen.length > 0;
    }, "the labels");
    rules.labelMore();
    expect(seen.slice(1)).toEqual(["renewed: 8"]);
    expect(seen[0]).toContain("new ones begin at 8");
    expect(rules.labelsSince).toBe(5_000);
  });

  test("does not throw if the kernel cannot say it, says so, and asks again half a minute later", () => {
    let isRefused = true;
    let asked = 0;
    rules = open(() => {
      asked += 1;
      if (isRefused) throw new Error("no such table");
      return { next: () => ({ done: true, value: 0 }) };
    });

    expect([numberOf("a"), numberOf("b"), asked, seen.length]).toEqual(["none", "none", 1, 1]);
    expect(seen[0]).toContain("no such table");
    isRefused = false;
    elapsed += 29_000;
    rules.labelMore();
    expect([asked, seen.length]).toEqual([1, 1]);
    elapsed += 1_000;
    rules.labelMore();
    expect([asked, seen.at(-1)]).toEqual([2, "renewed: 1"]);
  });

  test("close() ends a look", async () => {
    let isEnded = false;
    rules = open(function* () {
      try {
        for (;;) {
          elapsed += 10;
          yield undefined;
        }
      } finally {
        isEnded = true;
      }
    });
    numberOf("a");
    rules.close();

    await pollUntil(() => isEnded, "the look to end");
    expect(numberOf("a")).toBe("none");
  });
});
