import { describe, expect, test } from "bun:test";
import { generateScript } from "./generate.ts";
import { FAULTS } from "./operation.ts";

const scripts = Array.from({ length: 300 }, (_, seed) => generateScript(seed));

describe("generateScript()", () => {
  test("a seed gives the same script each time, which survives JSON", () => {
    for (const seed of [1, 2, 3]) {
      const script = generateScript(seed);

      expect(script).toEqual(generateScript(seed));
      expect(JSON.parse(JSON.stringify(script))).toEqual(script);
    }
  });

  test("the operations are in the order of time", () => {
    for (const { operations } of scripts) {
      const times = operations.map(({ at }) => at);

      expect(times).toEqual(times.toSorted((left, right) => left - right));
    }
  });

  test("some script uses each fault, each datastore and each flavour", () => {
    const kinds = new Set(scripts.flatMap(({ operations }) => operations.map(({ kind }) => kind)));

    expect(FAULTS.filter((fault) => !kinds.has(fault))).toEqual([]);
    expect(new Set(scripts.map(({ datastore, flavour }) => `${datastore}, ${flavour}`)).size).toBe(6);
  });

  test("at the end there are pods to reach, on more than one node", () => {
    for (const { nodes, operations } of scripts) {
      const present = new Set(nodes);
      const pods = new Map<string, string>();
      for (const operation of operations) {
        if (operation.kind === "join node") present.add(operation.node);
        if (operation.kind === "delete node") present.delete(operation.node);
        if (operation.kind === "delete pod") pods.delete(`${operation.namespace}/${operation.name}`);
        if (operation.kind === "create pod") pods.set(`${operation.namespace}/${operation.name}`, operation.node);
      }
      const used = [...pods.values()].filter((node) => present.has(node));

      expect(used.length).toBeGreaterThanOrEqual(4);
      expect(new Set(used).size).toBeGreaterThanOrEqual(2);
    }
  });
});
