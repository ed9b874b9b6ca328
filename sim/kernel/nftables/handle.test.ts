import { describe, expect, test } from "bun:test";
import { drain, joinGroups, portOf } from "../../../src/linux/netlink-group.ts";
import { closeNetlinkSocket } from "../../../src/linux/netlink-socket.ts";
import { commit, readGeneration, tryCommit } from "../../../src/linux/nftables/commit.ts";
import {
  findTable,
  listChains,
  listElements,
  listRules,
  listSets,
  listTables,
} from "../../../src/linux/nftables/read.ts";
import { changesOf, type NftChange } from "../../../src/linux/nftables/ruleset.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { hostportRuleset, hostportTable } from "../../../test/linux/hostport-ruleset.ts";
import { ModelSockets } from "./model-sockets.ts";

const table = { family: "inet", name: "x" } as const;
const addTable: NftChange = { kind: "add-table", table };

describe("handleNetfilter()", () => {
  test("lists a table as it was written", () => {
    const socket = new ModelSockets().open();

    commit(socket, changesOf(hostportRuleset));

    expect(listTables(socket)).toEqual([hostportRuleset.table]);
    expect(listChains(socket, hostportTable)).toEqual([...hostportRuleset.chains]);
    expect(listSets(socket, hostportTable)).toEqual([...hostportRuleset.sets]);
    expect(listRules(socket, hostportTable).map(({ chain }) => chain)).toEqual(
      hostportRuleset.rules.map(({ chain }) => chain),
    );
    for (const { set, elements } of hostportRuleset.elements)
      expect(listElements(socket, hostportTable, set)).toEqual([...elements]);
  });

  test("changes nothing if one message of a batch is refused", () => {
    const sockets = new ModelSockets();
    const socket = sockets.open();

    const refusals = tryCommit(socket, [addTable, { kind: "flush-chain", table, chain: "none" }]);

    expect(refusals.map(({ change, error }) => [change?.kind, error.errno])).toEqual([["flush-chain", 2]]);
    expect(findTable(socket, table)).toBeUndefined();
    expect(readGeneration(socket)).toBe(1);
    expect(sockets.state.changes).toBe(0);
  });

  test("refuses a batch for another generation as a whole", () => {
    const socket = new ModelSockets().open();
    commit(socket, [addTable]);

    const [refusal] = tryCommit(socket, [{ kind: "delete-table", table }], 1);

    expect(refusal?.change).toBeUndefined();
    expect(refusal?.error.errno).toBe(85);
    expect(tryCommit(socket, [{ kind: "delete-table", table }], 2)).toEqual([]);
  });

  test("lets a batch or a list fail once, if it is told so", () => {
    const sockets = new ModelSockets();
    const socket = sockets.open();

    sockets.state.faults.refuseBatch("ENOMEM");
    const refusals = tryCommit(socket, [addTable]);
    sockets.state.faults.interruptLists(1);
    commit(socket, [addTable]);

    expect(refusals.map(({ change, error }) => [change, error.errno])).toEqual([[undefined, 12]]);
    expect(listTables(socket)).toEqual([table]);
  });

  test("deletes a table with the socket that owns it, and tells listeners", () => {
    const sockets = new ModelSockets();
    const [owner, other, listener] = [sockets.open(), sockets.open(), sockets.open()];
    joinGroups(listener, [7], 0);
    commit(owner, [{ kind: "add-table", table, isOwned: true }]);
    const [refusal] = tryCommit(other, [{ kind: "delete-table", table }]);
    closeNetlinkSocket(owner);

    const heard: unknown[] = [];
    drain(listener, ({ type, port }) => void heard.push([type, port]));

    expect(refusal?.error.errno).toBe(1);
    expect(listTables(other)).toEqual([]);
    const { newTable, deleteTable, newGeneration } = wire.MESSAGE;
    expect(heard).toEqual([newTable, newGeneration, deleteTable, newGeneration].map((type) => [type, portOf(owner)]));
  });
});
