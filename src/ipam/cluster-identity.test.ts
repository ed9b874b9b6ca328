import { describe, expect, test } from "bun:test";
import { type ComparedCluster, judgeCluster, type KnownNode } from "./cluster-identity.ts";

const named = (...names: readonly string[]): readonly KnownNode[] => names.map((name) => ({ name, addresses: [] }));
const on = (machine: string, ...addresses: readonly string[]) => [{ name: "n1", machine, addresses }];
const NONE = { recorded: undefined, uid: "this", records: [], nodes: [] };

describe("judgeCluster()", () => {
  test.each<[string, "same" | "new" | "other", Partial<ComparedCluster>]>([
    ["the recorded UID", "same", { recorded: "this" }],
    ["the recorded UID, whatever the nodes are", "same", { recorded: "this", records: named("a"), nodes: named("b") }],
    ["another UID", "other", { recorded: "another" }],
    [
      "another UID, although the nodes are the same",
      "other",
      { recorded: "another", records: on("m"), nodes: on("m") },
    ],
    ["a UID, and a cluster that tells none", "other", { recorded: "another", uid: undefined }],
    ["no nodes in the datastore", "new", { nodes: named("a") }],
    ["the same nodes", "new", { records: named("a", "b"), nodes: named("b", "a") }],
    ["no node of the cluster", "other", { records: named("a"), nodes: [] }],
    ["other nodes", "other", { records: named("a", "b"), nodes: named("c", "d") }],
    ["one common name of four", "other", { records: named("a", "b", "c", "d"), nodes: named("a", "x", "y", "z") }],
    [
      "more nodes in the cluster, where agents are missing yet",
      "new",
      { records: named("a"), nodes: named("a", "b", "c") },
    ],
    ["more nodes in the datastore, which were deleted", "new", { records: named("a", "b", "c"), nodes: named("c") }],
    ["the same machine", "new", { records: on("m", "10.0.0.1"), nodes: on("m", "10.0.0.2") }],
    ["another machine of the same name", "other", { records: on("m", "10.0.0.1"), nodes: on("o", "10.0.0.2") }],
    ["another machine ID, and the same address", "new", { records: on("m", "10.0.0.1"), nodes: on("o", "10.0.0.1") }],
  ])("%s: %s", (_, kind, compared) => {
    expect(judgeCluster({ ...NONE, ...compared })).toMatchObject({ kind });
  });
});
