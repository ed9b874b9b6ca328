import { describe, expect, test } from "bun:test";
import { type ComparedCluster, judgeCluster, type KnownNode } from "./cluster-identity.ts";

/** Nodes of which nothing but the name is known. */
const named = (...names: readonly string[]): readonly KnownNode[] => names.map((name) => ({ name, addresses: [] }));
/** Each has an address that only it has. */
const known = (...names: readonly string[]): readonly KnownNode[] =>
  names.map((name) => ({ name, addresses: [`10.0.0.${name.charCodeAt(0)}`] }));
const on = (machine: string, ...addresses: readonly string[]) => [{ name: "n1", machine, addresses }];
/** Three nodes with the names that most clusters have. */
const three = (machines: readonly (string | undefined)[], network?: string): readonly KnownNode[] =>
  machines.map((machine, index) => ({
    ...{ name: `node-${index + 1}`, machine },
    addresses: network === undefined ? [] : [`${network}.${index + 1}`],
  }));
/** All have the address that a hypervisor gives to each of its guests. */
const behindNat = (machines: readonly string[]) =>
  three(machines).map((node) => ({ ...node, addresses: ["10.0.2.15"] }));
const twice = (nodes: readonly KnownNode[]) =>
  nodes.map((node) => ({ ...node, addresses: [...node.addresses, ...node.addresses] }));
const UNKNOWN = [undefined, undefined, undefined];
const NONE: ComparedCluster = { recorded: undefined, uid: "this", records: [], nodes: [], proof: "machine or address" };

describe("judgeCluster()", () => {
  test.each<[string, "same" | "new" | "other", Partial<ComparedCluster>]>([
    ["the recorded UID", "same", { recorded: "this" }],
    ["the recorded UID, whatever the nodes are", "same", { recorded: "this", records: known("a"), nodes: known("b") }],
    ["another UID", "other", { recorded: "another" }],
    [
      "another UID, although the nodes are the same",
      "other",
      { recorded: "another", records: on("m"), nodes: on("m") },
    ],
    ["a UID, and a cluster that tells none", "other", { recorded: "another", uid: undefined }],
    ["no nodes in the datastore", "new", { nodes: known("a") }],
    ["the same nodes", "new", { records: known("a", "b"), nodes: known("b", "a") }],
    ["no node of the cluster", "other", { records: known("a"), nodes: [] }],
    ["other nodes", "other", { records: known("a", "b"), nodes: known("c", "d") }],
    ["one common node of four", "other", { records: known("a", "b", "c", "d"), nodes: known("a", "x", "y", "z") }],
    [
      "more nodes in the cluster, where agents are missing yet",
      "new",
      { records: known("a"), nodes: known("a", "b", "c") },
    ],
    ["more nodes in the datastore, which were deleted", "new", { records: known("a", "b", "c"), nodes: known("c") }],
    ["the same machine", "new", { records: on("m", "10.0.0.1"), nodes: on("m", "10.0.0.2") }],
    ["another machine of the same name", "other", { records: on("m", "10.0.0.1"), nodes: on("o", "10.0.0.2") }],
    [
      "other machine IDs, and the same addresses: the kubelets see others than the agents",
      "new",
      { records: three(["m", "n", "o"], "10.1.0"), nodes: three(["a", "b", "c"], "10.1.0") },
    ],
    [
      "a single node on another machine, with an address that many clusters of one node have",
      "other",
      { records: on("m", "10.0.2.15"), nodes: on("o", "10.0.2.15") },
    ],
    [
      "a single node on another machine, with the address of one of several nodes",
      "other",
      { records: three(["m"], "10.1.0"), nodes: three(["a", "b", "c"], "10.1.0") },
    ],
    [
      "a single node without a known machine, and its address",
      "new",
      { records: three([undefined], "10.1.0"), nodes: three(["a"], "10.1.0") },
    ],
    [
      "one address on all nodes, as behind the NAT of their hypervisors, and other machines",
      "other",
      { records: behindNat(["m", "n", "o"]), nodes: behindNat(["a", "b", "c"]) },
    ],
    [
      "one address on all nodes of the datastore, which one node of the cluster has, too",
      "other",
      { records: behindNat(["m", "n"]), nodes: [...behindNat(["a"]), ...three(["x", "b"], "10.1.0").slice(1)] },
    ],
    [
      "one address on all nodes, and the same machines",
      "new",
      { records: behindNat(["a", "b", "c"]), nodes: behindNat(["a", "b", "c"]) },
    ],
    [
      "one address that each node names twice, and that only it has",
      "new",
      { records: twice(three(["m", "n"], "10.1.0")), nodes: three(["a", "b"], "10.1.0") },
    ],
    [
      "the same names, and addresses of another network",
      "other",
      { records: three(UNKNOWN, "10.1.0"), nodes: three(["a", "b", "c"], "10.2.0") },
    ],
    [
      "records of an earlier release without machines, and the same addresses",
      "new",
      { records: three(UNKNOWN, "10.1.0"), nodes: three(["a", "b", "c"], "10.1.0") },
    ],
    ["the same names, of which nothing more is known", "other", { records: three(UNKNOWN), nodes: three(UNKNOWN) }],
    [
      "the same names, of which the datastore knows nothing more",
      "other",
      { records: three(UNKNOWN), nodes: three(["a", "b", "c"], "10.1.0") },
    ],
    [
      "the same machine ID on all nodes, as copies of one image have it, and other addresses",
      "other",
      { records: three(["copy", "copy", "copy"], "10.1.0"), nodes: three(["copy", "copy", "copy"], "10.2.0") },
    ],
    [
      "the same machines, all with new addresses",
      "new",
      { records: three(["a", "b", "c"], "10.1.0"), nodes: three(["a", "b", "c"], "10.2.0") },
    ],
    [
      "records without machines, of which one has its former address",
      "new",
      {
        records: [...three(UNKNOWN, "10.1.0").slice(0, 2), { name: "node-3", addresses: ["10.9.0.9"] }],
        nodes: three(["a", "b", "c"], "10.1.0"),
      },
    ],
    [
      "the same names, if the datastore is the API of the cluster",
      "new",
      { records: three(UNKNOWN), nodes: three(["a", "b", "c"], "10.1.0"), proof: "name" },
    ],
    [
      "other names, if the datastore is the API of the cluster",
      "other",
      { records: named("a", "b"), nodes: three(["a", "b", "c"], "10.1.0"), proof: "name" },
    ],
  ])("%s: %s", (_, kind, compared) => {
    expect(judgeCluster({ ...NONE, ...compared })).toMatchObject({ kind });
  });

  test("says of how many nodes only the name is the same", () => {
    expect(judgeCluster({ ...NONE, records: three(UNKNOWN), nodes: three(UNKNOWN) })).toEqual({
      kind: "other",
      reason:
        'of its 3 nodes, such as "node-1", the cluster has 0; 3 more have the name, but no known machine or address in common',
    });
  });
});
