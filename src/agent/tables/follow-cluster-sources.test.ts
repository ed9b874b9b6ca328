import { describe, expect, test } from "bun:test";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { PluginError } from "../../errors.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { formatRange } from "../../ip/range.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { type Node, node } from "../../model/node.ts";
import { followClusterSources } from "./follow-cluster-sources.ts";

type Changes = { readonly pools?: readonly RecordChange<IPPool>[]; readonly nodes?: readonly RecordChange<Node>[] };

const pool = (name: string, cidr: string): RecordChange<IPPool> => ({
  kind: "put",
  key: name,
  value: ipPool.make({ name }, { cidr } as IPPool["spec"]),
  previous: undefined,
});
const host = (name: string, address: string): RecordChange<Node> => ({
  kind: "put",
  key: name,
  value: node.make({ name }, { bgp: { ipv4Address: address } }),
  previous: undefined,
});

/** What is written after each of the updates, IPv4 only. */
async function written(updates: readonly Changes[], { permitted = "", fails = false } = {}) {
  const [writes, logged]: [string[], string[]] = [[], []];
  async function* all() {
    for (const { pools = [], nodes = [] } of updates) yield { changes: { pools, nodes } };
  }
  await followClusterSources(all(), {
    permitted: [parsePrefix(permitted) ?? []].flat(),
    write: async (sources) => {
      writes.push(sources[4].map(formatRange).join(" "));
      if (fails) throw new Error("refused");
      return true;
    },
    log: (message) => logged.push(message),
  });
  return { writes, logged };
}

describe("followClusterSources()", () => {
  test("writes the addresses of pools and nodes, and again when one is added, changed or deleted", async () => {
    const { writes } = await written([
      { pools: [pool("blue", "10.0.0.0/24")], nodes: [host("a", "192.0.2.1/24")] },
      { pools: [pool("red", "10.2.0.0/24")] },
      { nodes: [host("a", "192.0.2.1/24")] },
      { nodes: [host("b", "192.0.2.9/24"), { kind: "delete", key: "a", previous: undefined }] },
    ]);

    expect(writes).toEqual([
      "10.0.0.0-10.0.0.255 192.0.2.1-192.0.2.1",
      "10.0.0.0-10.0.0.255 10.2.0.0-10.2.0.255 192.0.2.1-192.0.2.1",
      "10.0.0.0-10.0.0.255 10.2.0.0-10.2.0.255 192.0.2.9-192.0.2.9",
    ]);
  });

  test("leaves out what the administrator permits, and reports a refusal once", async () => {
    const updates = [{ pools: [pool("blue", "10.0.0.0/24")] }, { pools: [pool("red", "10.2.0.0/24")] }];
    const { writes, logged } = await written(updates, { permitted: "10.0.0.0/25", fails: true });

    expect(writes[0]).toBe("10.0.0.128-10.0.0.255");
    expect(logged).toEqual([expect.stringContaining("refused")]);
  });

  test("writes nothing while a pool is unreadable that was never read: the table keeps excluding more", async () => {
    const unreadable: RecordChange<IPPool> = {
      ...{ kind: "unreadable", key: "red", previous: undefined },
      failure: new PluginError("internal", "unreadable"),
    };
    expect((await written([{ pools: [pool("blue", "10.0.0.0/24"), unreadable] }])).writes).toEqual([]);
  });
});
