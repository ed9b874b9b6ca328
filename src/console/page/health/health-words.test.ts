import { describe, expect, test } from "bun:test";
import type { Health, HealthNode, State } from "../../api/health.ts";
import { headline, isNodeFound, nodeCounts, problemsOf, sortedNodes } from "./health-words.ts";

function node(name: string, state: State, messages: readonly string[] = []): HealthNode {
  const problems = messages.map((message) => ({ state: "warning" as const, message }));
  return {
    name,
    state,
    agent: "running",
    version: "v3.29.0",
    addresses: ["10.1.0.7"],
    tunnel: "",
    bgp: "",
    knownAt: 1,
    problems,
  };
}

const HEALTH: Health = { at: 1, state: "ok", parts: [], nodes: [], problems: [], hidden: [] };

describe("the words of the health", () => {
  test("problems of nodes are with those of the cluster, failures first", () => {
    const health: Health = {
      ...HEALTH,
      nodes: [node("node-2", "warning", ["no tunnel"])],
      problems: [
        { state: "warning", message: "old" },
        { state: "failed", message: "no datastore" },
      ],
    };

    expect(problemsOf(health).map(({ message, node: of }) => [message, of])).toEqual([
      ["no datastore", undefined],
      ["old", undefined],
      ["no tunnel", "node-2"],
    ]);
    expect(headline(health)).toBe("1 failure, 2 warnings");
  });

  test("says that everything works only if everything is known", () => {
    expect(headline(HEALTH)).toBe("Everything works");
    expect(headline({ ...HEALTH, state: "unknown" })).toBe("Not everything is known");
  });

  test("nodes in trouble come first, the others as people count", () => {
    const nodes = [node("node-10", "ok"), node("node-2", "ok"), node("node-3", "unknown"), node("node-9", "failed")];

    expect(sortedNodes(nodes).map(({ name }) => name)).toEqual(["node-9", "node-3", "node-2", "node-10"]);
    expect(nodeCounts(nodes)).toEqual([
      ["failed", 1],
      ["unknown", 1],
      ["ok", 2],
    ]);
  });

  test.each([
    ["NODE-1", true],
    ["10.1.0", true],
    ["3.29", true],
    ["blue", false],
  ])("a node is found by %p: %p", (text, isFound) => {
    expect(isNodeFound(node("node-1", "ok"), text)).toBe(isFound);
  });
});
