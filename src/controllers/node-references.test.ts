import { describe, expect, test } from "bun:test";
import { resourceKey } from "../model/keys.ts";
import { NODE } from "../model/kinds.ts";
import type { FactsUpdate } from "./facts.ts";
import { NodeReferences } from "./node-references.ts";

const keyOf = (name: string) => resourceKey("nodes", { name });
const record = (name: string, nodeName?: string) =>
  NODE.codec.make({ name }, nodeName === undefined ? {} : { orchRefs: [{ orchestrator: "k8s", nodeName }] });
const put = (name: string, nodeName?: string): FactsUpdate => ({
  orchestrator: {},
  stored: { nodes: [{ kind: "put", key: keyOf(name), value: record(name, nodeName), previous: undefined }] },
});
const removed = (name: string): FactsUpdate => ({
  orchestrator: {},
  stored: { nodes: [{ kind: "delete", key: keyOf(name), previous: undefined }] },
});
const reported = (name: string): FactsUpdate => ({
  orchestrator: { nodes: [{ kind: "delete", key: keyOf(name), previous: undefined }] },
  stored: {},
});

describe("NodeReferences", () => {
  test("finds the records that refer to a node, as they do now", () => {
    const references = new NodeReferences();
    for (const update of [put("a", "host-1"), put("b", "host-1"), put("c")]) references.recordsIn(update);
    expect([...references.recordsIn(reported("host-1"))]).toEqual([keyOf("a"), keyOf("b")]);

    references.recordsIn(put("a", "host-2"));
    expect([...references.recordsIn(reported("host-1"))]).toEqual([keyOf("b")]);
    expect([...references.recordsIn(reported("host-2"))]).toEqual([keyOf("a")]);
  });

  test("forgets records that are deleted, whatever comes and goes", () => {
    const references = new NodeReferences();
    for (let count = 0; count < 100; count += 1) {
      references.recordsIn(put(`n${count}`, `host-${count}`));
      references.recordsIn(removed(`n${count}`));
    }
    references.recordsIn(put("a", "host-1"));
    references.recordsIn(put("a"));

    expect(references.size).toBe(0);
    expect([...references.recordsIn(reported("host-1"))]).toEqual([]);
  });
});
