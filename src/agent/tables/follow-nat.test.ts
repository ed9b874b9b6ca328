import { describe, expect, test } from "bun:test";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { PluginError } from "../../errors.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { NODE_AGENT_CONFIGURATION } from "../../model/kinds.ts";
import type { SettingChanges } from "../routing-setting.ts";
import { followNat } from "./follow-nat.ts";

const put = (key: string, cidr: string, spec: Partial<IPPool["spec"]>): RecordChange<IPPool> => {
  const { apiVersion } = ipPool.make({ name: key }, {} as IPPool["spec"]);
  const value = ipPool.readObject(
    { apiVersion, kind: "IPPool", metadata: { name: key }, spec: { cidr, ...spec } },
    key,
  );
  return { kind: "put", key, value, previous: undefined };
};
const gone = (key: string): RecordChange<IPPool> => ({ kind: "delete", key, previous: undefined });
const unreadable = (key: string): RecordChange<IPPool> => ({
  ...{ kind: "unreadable", key, previous: undefined },
  failure: new PluginError("internal", "unreadable"),
});

/** What is written for each of the updates. */
async function written(...updates: readonly (readonly RecordChange<IPPool>[])[]): Promise<readonly string[]> {
  return writtenFor(updates.map((pools) => ({ pools, configurations: [] })));
}

async function writtenFor(
  updates: readonly (SettingChanges & { readonly pools: readonly RecordChange<IPPool>[] })[],
  hasContainers = false,
): Promise<readonly string[]> {
  const tables: string[] = [];
  async function* all() {
    for (const changes of updates) yield { changes };
  }
  await followNat(all(), {
    node: "node-1",
    write: async (pools) => {
      tables.push(pools.map(({ cidr, natOutgoing }) => `${formatPrefix(cidr)} ${natOutgoing}`).join(", "));
      return true;
    },
    hasContainers: () => hasContainers,
    log: () => {},
  });
  return tables;
}

describe("followNat()", () => {
  test("writes the pools at the start, even if there are none", async () => {
    expect(await written([])).toEqual([""]);
    expect(await written([put("a", "10.0.0.0/16", { natOutgoing: true })])).toEqual(["10.0.0.0/16 true"]);
  });

  test("leaves the table to containers that run while there is no pool at all: the datastore may have lost its records", async () => {
    const pool = put("a", "10.0.0.0/16", { natOutgoing: true });
    const updates = [[], [pool], [gone("a")], [pool]].map((pools) => ({ pools, configurations: [] }));
    expect(await writtenFor(updates, true)).toEqual(["10.0.0.0/16 true", "10.0.0.0/16 true"]);
    expect(await writtenFor(updates)).toEqual(["", "10.0.0.0/16 true", "", "10.0.0.0/16 true"]);
  });

  test("writes again if natOutgoing changes, or a pool comes or goes, and not if anything else changes", async () => {
    const tables = await written(
      [put("a", "10.0.0.0/16", { natOutgoing: true })],
      [put("a", "10.0.0.0/16", { natOutgoing: true, vxlanMode: "Always" })],
      [],
      [put("a", "10.0.0.0/16", { natOutgoing: false })],
      [put("b", "10.1.0.0/16", {})],
      [gone("a")],
    );
    expect(tables).toEqual([
      "10.0.0.0/16 true",
      "10.0.0.0/16 false",
      "10.0.0.0/16 false, 10.1.0.0/16 false",
      "10.1.0.0/16 false",
    ]);
  });

  test("keeps what it knows of a pool that became unreadable, and waits for one that it has never known", async () => {
    const known = put("a", "10.0.0.0/16", { natOutgoing: true });
    expect(await written([known], [unreadable("a")], [put("b", "10.1.0.0/16", {})])).toEqual([
      "10.0.0.0/16 true",
      "10.0.0.0/16 true, 10.1.0.0/16 false",
    ]);
    expect(await written([known, unreadable("b")], [gone("b")])).toEqual(["10.0.0.0/16 true"]);
  });

  test("has no table while routing is disabled, and removes it once", async () => {
    const routing = (value: "Enabled" | "Disabled") => ({
      kind: "put" as const,
      key: NODE_AGENT_CONFIGURATION.key({ name: "node.node-1" }),
      value: NODE_AGENT_CONFIGURATION.codec.make({ name: "node.node-1" }, { routing: value }),
      previous: undefined,
    });
    const pool = put("a", "10.0.0.0/16", { natOutgoing: true });
    const tables = await writtenFor([
      { pools: [pool], configurations: [routing("Disabled")] },
      { pools: [put("b", "10.1.0.0/16", {})], configurations: [] },
      { pools: [], configurations: [routing("Enabled")] },
      { pools: [], configurations: [routing("Disabled")] },
    ]);
    expect(tables).toEqual(["", "10.0.0.0/16 true, 10.1.0.0/16 false", ""]);
  });

  test("reports a kernel that refuses, and goes on", async () => {
    const messages: string[] = [];
    let attempts = 0;
    async function* all() {
      yield { changes: { configurations: [], pools: [put("a", "10.0.0.0/16", { natOutgoing: true })] } };
      yield { changes: { configurations: [], pools: [gone("a")] } };
    }
    const write = async () => {
      attempts += 1;
      throw new Error("no NAT in this kernel");
    };
    const log = (message: string) => void messages.push(message);
    await followNat(all(), { node: "node-1", write, hasContainers: () => false, log });
    expect([attempts, messages]).toEqual([2, ["no NAT in this kernel", "no NAT in this kernel"]]);
  });
});
