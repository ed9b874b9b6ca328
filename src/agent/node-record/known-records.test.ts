import { describe, expect, test } from "bun:test";
import { poolChange } from "../../../test/support/ipam.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { PluginError } from "../../errors.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import { NODE, POOL } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { KnownRecords } from "./known-records.ts";

const NONE = { nodes: [], pools: [], configurations: [] } as const;
const failure = new PluginError("record-malformed", "damaged");

function pool(name: string): RecordChange<IPPool> {
  const change = poolChange(name, "10.0.0.0/24");
  const value = change.kind === "put" ? change.value : "";
  return { kind: "put", key: change.key, value: POOL.codec.read(value, change.key), previous: undefined };
}

function node(name: string): RecordChange<Node> {
  return { kind: "put", key: NODE.key({ name }), value: NODE.codec.make({ name }, {}), previous: undefined };
}

function damaged<Value>({ key }: RecordChange<Value>): RecordChange<Value> {
  return { kind: "unreadable", key, failure, previous: undefined };
}

describe("KnownRecords", () => {
  test("keep what could be read last, until it is deleted", () => {
    const records = new KnownRecords("here");
    expect(records.facts).toBeUndefined();
    records.update({ ...NONE, nodes: [node("here")], pools: [pool("blue")] });
    records.update({ ...NONE, nodes: [damaged(node("here"))], pools: [damaged(pool("blue"))] });

    expect(records.facts).toMatchObject({ node: { metadata: { name: "here" } }, hasUnknownPool: false });
    expect(records.facts?.pools).toHaveLength(1);
    records.update({ ...NONE, pools: [{ kind: "delete", key: pool("blue").key, previous: undefined }] });
    expect(records.facts?.pools).toEqual([]);
  });

  test("say if a pool never could be read", () => {
    const records = new KnownRecords("here");
    records.update({ ...NONE, pools: [damaged(pool("blue"))] });
    expect(records.facts?.hasUnknownPool).toBe(true);
    records.update({ ...NONE, pools: [pool("blue")] });
    expect(records.facts?.hasUnknownPool).toBe(false);
  });

  test("change only with the own node, with pools and with settings", () => {
    const records = new KnownRecords("here");

    expect(records.update(NONE)).toBe(true);
    expect(records.update({ ...NONE, nodes: [node("there")] })).toBe(false);
    expect(records.update({ ...NONE, nodes: [node("here")] })).toBe(true);
    expect(records.update({ ...NONE, pools: [pool("blue")] })).toBe(true);
  });
});
