/** Messages of a batch about tables and chains. */
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import type { BaseChain, NftFamily } from "../../../src/linux/nftables/ruleset.ts";
import { findComment } from "../../../src/linux/nftables/userdata.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { Refused, required } from "./refused.ts";
import type { Request } from "./request.ts";
import { type ModelChain, type ModelTable, type NetfilterState, tableKey } from "./state.ts";
import type { Transaction } from "./transaction.ts";

/** `port`: of the socket that asks; other sockets cannot change a table with an owner. */
export function findTable(state: NetfilterState, request: Request, port?: number): ModelTable {
  const { family } = request;
  const name = required(request.text(wire.TABLE.name), "EINVAL");
  const table = family === undefined ? undefined : state.tables.get(tableKey(family, name));
  if (table === undefined) throw new Refused("ENOENT");
  if (port !== undefined && table.owner !== undefined && table.owner !== port) throw new Refused("EPERM");
  return table;
}

export function findChain(table: ModelTable, name: string | undefined): ModelChain {
  return required(table.chains.get(required(name, "EINVAL")), "ENOENT");
}

export function addTable(transaction: Transaction, request: Request, port: number): void {
  const { state } = transaction;
  const family = required(request.family, "EINVAL");
  const name = required(request.text(wire.TABLE.name), "EINVAL");
  const isOwned = ((request.number(wire.TABLE.flags) ?? 0) & wire.TABLE_OWNED) !== 0;
  if (state.tables.has(tableKey(family, name))) {
    const table = findTable(state, request, port);
    if (request.hasFlag(FLAG.exclusive)) throw new Refused("EEXIST");
    if (isOwned !== (table.owner !== undefined)) throw new Refused("EOPNOTSUPP");
    return;
  }
  const comment = commentOf(request.bytes(wire.TABLE.userdata));
  transaction.addTable({
    family,
    name,
    handle: ++state.lastTableHandle,
    ...comment,
    ...(isOwned ? { owner: port } : {}),
    chains: new Map(),
    sets: new Map(),
    lastHandle: 0n,
  });
}

export function deleteTable(transaction: Transaction, request: Request, port: number): void {
  transaction.removeTable(findTable(transaction.state, request, port));
}

export function addChain(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const name = required(request.text(wire.CHAIN.name), "EINVAL");
  const existing = table.chains.get(name);
  const hook = request.nested(wire.CHAIN.hook);
  const policy = readPolicy(request);
  if (policy !== undefined && (existing === undefined ? hook === undefined : existing.chain.base === undefined))
    throw new Refused("EOPNOTSUPP");
  if (existing !== undefined) {
    if (request.hasFlag(FLAG.exclusive)) throw new Refused("EEXIST");
    if (hook !== undefined) requireSameHook(table.family, existing, request);
    transaction.updateChain(table, existing, policy);
    return;
  }
  const base = hook === undefined ? {} : { base: readBase(table.family, request) };
  const comment = commentOf(request.bytes(wire.CHAIN.userdata));
  transaction.addChain(table, {
    chain: { name, ...base, ...comment },
    handle: ++table.lastHandle,
    rules: [],
    jumps: 0,
  });
}

function requireSameHook(family: NftFamily, { chain: { base } }: ModelChain, request: Request): void {
  const { number, priority } = readHook(request);
  if (base === undefined) throw new Refused("EEXIST");
  if (wire.HOOK_NUMBER[base.hook] !== number || base.priority !== priority) throw new Refused("EOPNOTSUPP");
  if (readType(family, request) !== base.type) throw new Refused("EEXIST");
}

export function deleteChain(transaction: Transaction, request: Request, port: number): void {
  const table = findTable(transaction.state, request, port);
  const chain = findChain(table, request.text(wire.CHAIN.name));
  // Those from its own rules count too.
  const { jumps } = chain;
  transaction.removeRules(table, chain);
  if (jumps > 0) throw new Refused("EBUSY");
  transaction.removeChain(table, chain);
}

function readPolicy(request: Request): BaseChain["policy"] | undefined {
  const number = request.number(wire.CHAIN.policy);
  if (number === undefined) return undefined;
  if (number === wire.POLICY.accept) return "accept";
  if (number === wire.POLICY.drop) return "drop";
  throw new Refused("EINVAL");
}

const TYPES_OF_FAMILY: Readonly<Record<NftFamily, readonly BaseChain["type"][]>> = {
  inet: ["filter", "nat", "route"],
  ip: ["filter", "nat", "route"],
  ip6: ["filter", "nat", "route"],
  bridge: ["filter"],
  netdev: ["filter"],
};
const HOOKS_OF_TYPE: Readonly<Record<BaseChain["type"], readonly BaseChain["hook"][]>> = {
  filter: ["prerouting", "input", "forward", "output", "postrouting"],
  nat: ["prerouting", "input", "output", "postrouting"],
  route: ["output"],
};
/** Where connections are looked up: addresses can only be translated after it. */
const CONNTRACK_PRIORITY = -200;

function readBase(family: NftFamily, request: Request): BaseChain {
  const { number, priority } = readHook(request);
  const type = readType(family, request);
  const hook = HOOKS_OF_TYPE[type].find((each) => wire.HOOK_NUMBER[each] === number);
  if (hook === undefined) throw new Refused("EOPNOTSUPP");
  if (type === "nat" && priority <= CONNTRACK_PRIORITY) throw new Refused("EOPNOTSUPP");
  // A chain of this family needs the name of a device.
  if (family === "netdev") throw new Refused("EOPNOTSUPP");
  return { type, hook, priority, policy: readPolicy(request) ?? "accept" };
}

function readHook(request: Request): { readonly number: number; readonly priority: number } {
  const attributes = required(request.nested(wire.CHAIN.hook), "EINVAL");
  let number: number | undefined;
  let priority: number | undefined;
  while (attributes.next()) {
    if (attributes.type === wire.HOOK.number) number = attributes.u32Big();
    if (attributes.type === wire.HOOK.priority) priority = attributes.i32Big();
  }
  return { number: required(number, "ENOENT"), priority: required(priority, "ENOENT") };
}

function readType(family: NftFamily, request: Request): BaseChain["type"] {
  const wanted = request.text(wire.CHAIN.type) ?? "filter";
  return required(
    TYPES_OF_FAMILY[family].find((each) => each === wanted),
    "ENOENT",
  );
}

export function commentOf(userdata: Uint8Array | undefined, type?: number): { readonly comment?: string } {
  const comment = userdata === undefined ? undefined : findComment(userdata, type);
  return comment === undefined ? {} : { comment };
}
