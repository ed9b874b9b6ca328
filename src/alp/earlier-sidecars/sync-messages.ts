/**
 * The messages of policy sync, the protocol of the sidecars of releases from v3.15 to v3.28 (`felix.PolicySync`), as far as
 * they are needed. All of these releases have the same messages, and end at one that they do not know. Pure.
 */
import { delimited, message, varint } from "../../grpc/protobuf.ts";
import type { FlatPeer, FlatRule, NetList } from "./flat-rules.ts";

/** `address`: networks. `port`: addresses with a port. */
export type SetKind = "address" | "port";

/** Fields of `ToDataplane`. */
const FIELD = {
  inSync: 1,
  setUpdate: 2,
  setChange: 3,
  setRemove: 4,
  policyUpdate: 7,
  policyRemove: 8,
  endpointUpdate: 11,
  accountUpdate: 19,
  accountRemove: 20,
} as const;

/** They evaluate only the first one of an endpoint. */
const TIER = "default";
const SET_TYPE = { port: 1n, address: 2n } as const;
/** Clients of gRPC accept messages of at most 4 MB. */
const MOST_MEMBERS = 50_000;

export function inSync(): Uint8Array {
  return delimited(FIELD.inSync, message());
}

/** A set that is empty, or that no rule uses yet: those with many members arrive in pieces. */
export function setUpdates(name: string, kind: SetKind, members: readonly string[]): readonly Uint8Array[] {
  const [first, ...others] = piecesOf(members);
  const fields = [delimited(1, name), ...texts(2, first ?? []), varint(3, SET_TYPE[kind])];
  return [delimited(FIELD.setUpdate, message(...fields)), ...others.map((added) => setChange(name, added, []))];
}

export function setChanges(name: string, added: readonly string[], removed: readonly string[]): readonly Uint8Array[] {
  return [
    ...piecesOf(added).map((piece) => setChange(name, piece, [])),
    ...piecesOf(removed).map((piece) => setChange(name, [], piece)),
  ];
}

function setChange(name: string, added: readonly string[], removed: readonly string[]): Uint8Array {
  return delimited(FIELD.setChange, message(delimited(1, name), ...texts(2, added), ...texts(3, removed)));
}

export function setRemove(name: string): Uint8Array {
  return delimited(FIELD.setRemove, delimited(1, name));
}

function piecesOf(members: readonly string[]): readonly (readonly string[])[] {
  const pieces: (readonly string[])[] = [];
  for (let at = 0; at < members.length; at += MOST_MEMBERS) pieces.push(members.slice(at, at + MOST_MEMBERS));
  return pieces;
}

/** `rules`: encoded. */
export function policyUpdate(name: string, rules: readonly Uint8Array[]): Uint8Array {
  const policy = message(...rules.map((rule) => delimited(1, rule)));
  return delimited(FIELD.policyUpdate, message(delimited(1, policyId(name)), delimited(2, policy)));
}

export function policyRemove(name: string): Uint8Array {
  return delimited(FIELD.policyRemove, delimited(1, policyId(name)));
}

function policyId(name: string): Uint8Array {
  return message(delimited(1, TIER), delimited(2, name));
}

/** From here on requests are decided by these policies, in order. */
export function endpointUpdate(workload: string, policies: readonly string[]): Uint8Array {
  const id = message(delimited(2, "k8s"), delimited(3, workload), delimited(4, "eth0"));
  const tier = message(delimited(1, TIER), ...texts(2, policies));
  const endpoint = message(delimited(1, "active"), delimited(7, tier));
  return delimited(FIELD.endpointUpdate, message(delimited(1, id), delimited(5, endpoint)));
}

/** `account`: `NAMESPACE/NAME`. */
export function accountUpdate(account: string, labels: Iterable<string>): Uint8Array {
  const entries = Array.from(labels, (label) => delimited(2, message(delimited(1, label), delimited(2, ""))));
  return delimited(FIELD.accountUpdate, message(delimited(1, accountId(account)), ...entries));
}

export function accountRemove(account: string): Uint8Array {
  return delimited(FIELD.accountRemove, delimited(1, accountId(account)));
}

function accountId(account: string): Uint8Array {
  const slash = account.indexOf("/");
  return message(delimited(1, account.slice(0, slash)), delimited(2, account.slice(slash + 1)));
}

const SOURCE = { nets: 4, ports: 5, sets: 10, notSets: 109 } as const;
const DESTINATION = { nets: 6, ports: 7, sets: 11, notSets: 110 } as const;
const TCP = delimited(3, delimited(2, "tcp"));

export interface SetNames {
  /** The name of a set of these networks. */
  readonly ofNets: (nets: NetList) => string;
  /** What the sidecar knows a set of a rule as. */
  readonly of: (set: string) => string;
}

export function encodeRule({ action, source, destination, http }: FlatRule, names: SetNames): Uint8Array {
  const [...labels] = source.identities;
  return message(
    delimited(1, action),
    // Requests over UDP are not allowed.
    ...(action === "allow" ? [TCP] : []),
    ...peerFields(SOURCE, source, names),
    ...peerFields(DESTINATION, destination, names),
    ...(labels.length === 0 ? [] : [delimited(120, delimited(1, labels.map((label) => `has(${label})`).join(" && ")))]),
    ...(http === undefined ? [] : [delimited(122, encodeHttp(http))]),
  );
}

function peerFields(
  field: typeof SOURCE | typeof DESTINATION,
  { nets = [], netLists, notNets, ports = [], sets, notSets }: FlatPeer,
  names: SetNames,
): readonly Uint8Array[] {
  return [
    ...texts(field.nets, nets),
    ...ports.map(([first, last]) => delimited(field.ports, message(varint(1, BigInt(first)), varint(2, BigInt(last))))),
    ...texts(field.sets, [...sets.map(names.of), ...netLists.map(names.ofNets)]),
    ...texts(field.notSets, [...notSets.map(names.of), ...notNets.map(names.ofNets)]),
  ];
}

/** A match without criteria would match connections that are not HTTP: those have no path. */
function encodeHttp({ methods = [], paths = [] }: NonNullable<FlatRule["http"]>): Uint8Array {
  const isAnyMethod = methods.length === 0 || methods.includes("*");
  const wanted = paths.length === 0 && isAnyMethod ? [{ prefix: "/" }] : paths;
  return message(
    ...texts(1, methods),
    ...wanted.map((path) => delimited(2, "exact" in path ? delimited(1, path.exact) : delimited(2, path.prefix))),
  );
}

function texts(field: number, values: readonly string[]): readonly Uint8Array[] {
  return values.map((value) => delimited(field, value));
}
