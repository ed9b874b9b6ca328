/** The shared tables of a host, in the model of the kernel: what the agent wants is in them again after other programs. */
import { describe, expect, test } from "bun:test";
import { HostTables } from "../../src/agent/tables/host-tables.ts";
import { applyNat } from "../../src/firewall/apply-nat.ts";
import { FLOATING_TABLE } from "../../src/firewall/floating-table.ts";
import { GUARD_TABLE } from "../../src/firewall/guard-table.ts";
import { NAT_TABLE, type NatPool } from "../../src/firewall/nat-table.ts";
import { readFloatingState, readGuardState, readNatState } from "../../src/firewall/table-states.ts";
import { errnoOf } from "../../src/linux/errno.ts";
import type { FileFolder } from "../../src/linux/file-folder.ts";
import { KernelError } from "../../src/linux/kernel-error.ts";
import type { NetfilterAccess } from "../../src/linux/netfilter-access.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { listRuleHeads } from "../../src/linux/nftables/read.ts";
import type { TableReference } from "../../src/linux/nftables/ruleset.ts";
import { onceEach } from "../../src/log/once-each.ts";
import { address, prefix } from "../../test/support/ip.ts";
import { SimulatedHost } from "../kernel/simulated-host.ts";
import { Random } from "../schedule/random.ts";

const POOLS: readonly NatPool[] = [{ cidr: prefix("10.0.0.0/24"), natOutgoing: true }];
const FLOATING = [{ external: address("192.0.2.80"), internal: address("10.0.0.5") }];
const NO_FILES: FileFolder = {
  path: "host-ports",
  list: () => [],
  read: (name) => {
    throw new Error(`no file ${name}`);
  },
  write: () => {},
  remove: () => {},
  changedAt: () => undefined,
};

function openTables({ sources = () => [] as readonly never[] | undefined } = {}) {
  const host = new SimulatedHost({ name: "a", random: new Random(1) });
  const kernel = host.directKernel();
  const socket = kernel.openSocket("netfilter");
  const state = { now: 0, asked: 0 };
  const netfilter: NetfilterAccess = { withSocket: async (work) => work(socket) };
  const messages: string[] = [];
  const tables = new HostTables({
    ...{ netfilter, kernel, elapsed: () => state.now, hasGuard: () => true, hostPorts: NO_FILES },
    sources: () => {
      state.asked += 1;
      return sources();
    },
    log: (message) => void messages.push(message),
    problems: onceEach((message) => void messages.push(message)),
  });
  const remove = (...all: readonly TableReference[]) =>
    commit(
      socket,
      all.map((table) => ({ kind: "delete-table" as const, table })),
    );
  const states = () => [readNatState(socket), readFloatingState(socket), readGuardState(socket)];
  return { socket, tables, state, messages, remove, states };
}

describe("HostTables", () => {
  test("writes everything again that other programs removed, and says which", async () => {
    const { tables, remove, states, messages } = openTables();
    await tables.setNat(POOLS);
    await tables.setFloating(FLOATING);
    await tables.check();
    expect(states()).toEqual(["intact", "intact", "intact"]);

    remove(NAT_TABLE, FLOATING_TABLE, GUARD_TABLE);
    await tables.check();
    expect(states()).toEqual(["intact", "intact", "intact"]);
    for (const { name } of [NAT_TABLE, FLOATING_TABLE, GUARD_TABLE]) expect(messages.at(-1)).toContain(name);
  });

  test("has the pools that it was told last, whoever wrote others", async () => {
    const { tables, socket } = openTables();
    await tables.setNat(POOLS);
    const comment = listRuleHeads(socket, NAT_TABLE)[0]?.comment;
    await applyNat(socket, [{ cidr: prefix("10.9.0.0/24"), natOutgoing: true }]);
    await tables.check();
    expect(listRuleHeads(socket, NAT_TABLE)[0]?.comment).toBe(comment);
  });

  test("compares nothing while no rule changes, but for once a minute", async () => {
    const { tables, state } = openTables();
    await tables.check();
    await tables.check();
    const { asked } = state;
    for (let second = 0; second < 59; second++) {
      state.now += 1_000;
      await tables.check();
    }
    expect(state.asked).toBe(asked);
    state.now += 1_000;
    await tables.check();
    expect(state.asked).toBe(asked + 1);
  });

  test("looks again until the sources of pods are known", async () => {
    let known: readonly never[] | undefined;
    const { tables, state } = openTables({ sources: () => known });
    for (const _ of [1, 2, 3]) await tables.check();
    expect(state.asked).toBe(3);
    known = [];
    for (const _ of [1, 2, 3]) await tables.check();
    expect(state.asked).toBe(4);
  });

  test("a table that the kernel refuses does not keep the others away, and is tried again", async () => {
    const { tables, remove, states, messages } = openTables();
    let isRefused = true;
    const refusing = { natOutgoing: true } as NatPool;
    Object.defineProperty(refusing, "cidr", {
      get() {
        if (isRefused) throw new KernelError("masquerade", errnoOf("ENOENT"));
        return prefix("10.0.0.0/24");
      },
    });
    await expect(tables.setNat([refusing])).rejects.toThrow("masquerade");
    await tables.setFloating(FLOATING);
    await tables.check();
    expect(states()).toEqual(["missing", "intact", "intact"]);
    expect(messages.filter((message) => message.includes("masquerade"))).toHaveLength(1);

    isRefused = false;
    remove(FLOATING_TABLE);
    await tables.check();
    expect(states()).toEqual(["intact", "intact", "intact"]);
  });
});
