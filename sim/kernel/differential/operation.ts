/** Random requests to a kernel, made by the product's own encoders: two namespaces, `host` and `pod`, as on a node. */
import type { Address } from "../../../src/ip/address.ts";
import { formatAddress } from "../../../src/ip/address.ts";
import { prefixAround } from "../../../src/ip/prefix.ts";
import type { NetlinkRequest } from "../../../src/linux/netlink/request.ts";
import { addAddress, deleteAddress, ensureAddress } from "../../../src/linux/rtnetlink/address.ts";
import { deleteForwardingEntry, setForwardingEntry } from "../../../src/linux/rtnetlink/forwarding-entry.ts";
import {
  changeLink,
  changeLinkGroup,
  createIfb,
  deleteLink,
  deleteLinkGroup,
  type LinkReference,
} from "../../../src/linux/rtnetlink/link.ts";
import { deleteNeighbour, setNeighbour } from "../../../src/linux/rtnetlink/neighbour.ts";
import { addRoute, deleteRoute, type Route, replaceRoute } from "../../../src/linux/rtnetlink/route.ts";
import { addRule } from "../../../src/linux/rtnetlink/rule.ts";
import { createVeth } from "../../../src/linux/rtnetlink/veth.ts";
import { changeVxlan, createVxlan } from "../../../src/linux/rtnetlink/vxlan.ts";
import { address } from "../../../test/support/ip.ts";
import type { Random } from "../../schedule/random.ts";

export type Side = "host" | "pod";

/** What is done to both kernels. A descriptor of a namespace has another number in each. */
export type Operation = { readonly side: Side; readonly text: string } & (
  | { readonly kind: "request"; readonly requests: (netnsFd: (side: Side) => number) => readonly NetlinkRequest[] }
  | { readonly kind: "look up"; readonly address: Address }
);

const NAMES = ["a", "b", "c", "vx", "vy", "ifb", "lo"] as const;
const MACS = ["020000000001", "020000000002", "0200000000ff", "660102030405", "010000000000"] as const;
const GROUPS = [0, 0x4000_0001, 0x4000_0002] as const;
/** Every device above one of these has room for IPv6. */
const MTUS = [1500, 1400, 1450, 1350, 9000, 70_000] as const;
const INDEXES = [1, 2, 2, 2, 3, 3, 3, 4, 4, 5] as const;
const ADDRESSES = [
  "10.0.0.1",
  "10.0.0.2",
  "10.0.0.3",
  "10.0.1.1",
  "10.1.0.1",
  "169.254.1.1",
  "192.168.5.1",
  "fd00::1",
  "fd00::2",
  "fd00::3",
  "fd00:1::1",
  "fd05::1",
  "fe80::1",
].map(address);
const LENGTHS = { 4: [32, 32, 24, 16, 8, 0, 31], 6: [128, 128, 64, 48, 0, 120] } as const;
const MAIN = 254;
const TABLES = [MAIN, MAIN, MAIN, 100, 2005, 255] as const;

type Make = (random: Random, side: Side) => Operation;

/** The first are tried more often. */
const KINDS: readonly Make[] = [
  makeVeth,
  makeVeth,
  bringUp,
  bringUp,
  bringUp,
  makeVxlan,
  makeIfb,
  change,
  change,
  changeGroup,
  moveVxlan,
  remove,
  removeGroup,
  setAddress,
  setAddress,
  setAddress,
  dropAddress,
  putRoute,
  putRoute,
  putRoute,
  putRoute,
  dropRoute,
  putRule,
  putNeighbour,
  putNeighbour,
  dropNeighbour,
  putEntry,
  putEntry,
  dropEntry,
  lookUp,
  lookUp,
];

export function randomOperations(random: Random, count: number): readonly Operation[] {
  const both: readonly Side[] = ["host", "pod"];
  const start: readonly Operation[] = [
    ...both.map((side) => request(side, "lo up", () => changeLink({ name: "lo" }, { state: "up" }))),
    makeVeth(random, "host"),
    makeVeth(random, "host"),
    request("host", "up 2", () => changeLink({ name: "?", index: 2 }, { state: "up" })),
    request("pod", "up 2", () => changeLink({ name: "?", index: 2 }, { state: "up" })),
    setAddress(random, "host"),
    makeVxlan(random, "host"),
  ];
  const rest = Array.from({ length: count }, () => random.pick(KINDS)(random, random.chance(0.7) ? "host" : "pod"));
  return [...start.filter(() => random.chance(0.8)), ...rest];
}

function request(side: Side, details: string, make: (netnsFd: (side: Side) => number) => NetlinkRequest): Operation {
  return { side, kind: "request", text: details, requests: (netnsFd) => [make(netnsFd)] };
}

function makeVeth(random: Random, side: Side): Operation {
  const [name, peerName] = [random.pick(["a", "b", "c"]), random.pick(["a", "b", "e"])];
  const other = random.chance(0.85) ? (side === "host" ? "pod" : "host") : side;
  const state = random.pick(["up", "down"] as const);
  const settings = {
    ...(random.chance(0.6) ? { mtu: random.pick([...MTUS, 60]) } : {}),
    ...(random.chance(0.6) ? { queues: random.pick([1, 3]) } : {}),
  };
  const macs = [pickMac(random), pickMac(random)] as const;
  const group = random.pick(GROUPS);
  return request(
    side,
    `veth ${name} ${state} in group ${group}, ${peerName} in ${other} ${JSON.stringify(settings)}`,
    (netnsFd) =>
      createVeth({
        host: { name, mac: macs[0], state, group },
        peer: { name: peerName, mac: macs[1], netnsFd: netnsFd(other) },
        ...settings,
      }),
  );
}

function makeVxlan(random: Random, side: Side): Operation {
  const device = {
    name: random.pick(["vx", "vy"]),
    mac: pickMac(random),
    mtu: random.pick(MTUS),
    state: random.pick(["up", "down"] as const),
    id: random.pick([1, 2, 2 ** 24]),
    local: random.pick([address("192.168.5.1"), address("fd05::1")]),
    underlyingIndex: random.pick(INDEXES),
    port: random.pick([4789, 4790]),
  };
  const { mac: _mac, local, ...rest } = device;
  return request(side, `vxlan ${formatAddress(local)} ${JSON.stringify(rest)}`, () => createVxlan(device));
}

function makeIfb(random: Random, side: Side): Operation {
  const state = random.pick(["up", "down"] as const);
  const mtu = random.pick(MTUS);
  return request(side, `ifb ${state} ${mtu}`, () => createIfb({ name: "ifb", mtu, state }));
}

function bringUp(random: Random, side: Side): Operation {
  const link = pickLink(random);
  const state = random.chance(0.85) ? "up" : "down";
  return request(side, `${state} ${JSON.stringify(link)}`, () => changeLink(link, { state }));
}

function change(random: Random, side: Side): Operation {
  const link = pickLink(random);
  const changes = {
    ...(random.chance(0.3) ? { mac: pickMac(random) } : {}),
    ...(random.chance(0.3) ? { mtu: random.pick(MTUS) } : {}),
    ...(random.chance(0.3) ? { alias: random.pick(["one", "two", ""]) } : {}),
    ...(random.chance(0.3) ? { group: random.pick(GROUPS) } : {}),
    ...(random.chance(0.3) ? { ipv4: { reversePathFilter: random.pick([0, 2]), forwarding: 1 } } : {}),
    ...(random.chance(0.3) ? { state: random.pick(["up", "down"] as const) } : {}),
  };
  return request(side, `change ${JSON.stringify(link)} ${JSON.stringify(changes)}`, () => changeLink(link, changes));
}

function changeGroup(random: Random, side: Side): Operation {
  const group = random.pick(GROUPS);
  const changes = {
    alias: random.pick(["one", "two", ""]),
    ...(random.chance(0.3) ? { ipv4: { reversePathFilter: random.pick([0, 2]), forwarding: 1 } } : {}),
  };
  return request(side, `change group ${group} ${JSON.stringify(changes)}`, () => changeLinkGroup(group, changes));
}

function moveVxlan(random: Random, side: Side): Operation {
  const link = { name: random.pick(["vx", "vy", "a"]) };
  const moved = {
    ...(random.chance(0.6) ? { local: random.pick([address("192.168.5.9"), address("fd05::9")]) } : {}),
    ...(random.chance(0.6) ? { underlyingIndex: random.pick(INDEXES) } : {}),
  };
  const text = `${moved.local === undefined ? "" : formatAddress(moved.local)} on ${moved.underlyingIndex}`;
  return request(side, `move ${link.name} ${text}`, () => changeVxlan(link, moved));
}

function remove(random: Random, side: Side): Operation {
  const link = pickLink(random);
  return request(side, `remove ${JSON.stringify(link)}`, () => deleteLink(link));
}

function removeGroup(random: Random, side: Side): Operation {
  const group = random.pick(GROUPS);
  return request(side, `remove group ${group}`, () => deleteLinkGroup(group));
}

function setAddress(random: Random, side: Side): Operation {
  const of = pickAddress(random);
  const verb = random.pick(["add", "ensure"] as const);
  const text = `${verb} ${formatAddress(of.address)}/${of.length} on ${of.linkIndex}`;
  return request(side, text, () => (verb === "add" ? addAddress(of) : ensureAddress(of)));
}

function dropAddress(random: Random, side: Side): Operation {
  const of = pickAddress(random);
  const text = `delete ${formatAddress(of.address)}/${of.length} on ${of.linkIndex}`;
  return request(side, text, () => deleteAddress(of));
}

function putRoute(random: Random, side: Side): Operation {
  const route = pickRoute(random);
  const verb = random.pick(["add", "replace"] as const);
  const text = `${verb} route ${describeRoute(route)}`;
  return request(side, text, () => (verb === "add" ? addRoute(route) : replaceRoute(route)));
}

function dropRoute(random: Random, side: Side): Operation {
  const route = random.chance(0.5) ? pickRoute(random) : { destination: pickDestination(random) };
  return request(side, `delete route ${describeRoute(route)}`, () => deleteRoute(route));
}

function putRule(random: Random, side: Side): Operation {
  const [source, table] = [pickDestination(random), random.pick([100, 2005])];
  const rule = { source, table, priority: random.pick([1000, 2000]) };
  const text = `rule ${rule.priority} from ${formatAddress(source.network)}/${source.length} to ${table}`;
  return request(side, text, () => addRule(rule));
}

function putNeighbour(random: Random, side: Side): Operation {
  const neighbour = { linkIndex: pickEthernet(random), address: random.pick(ADDRESSES), mac: pickMac(random) };
  const text = `neighbour ${formatAddress(neighbour.address)} on ${neighbour.linkIndex}`;
  return request(side, text, () => setNeighbour(neighbour));
}

function dropNeighbour(random: Random, side: Side): Operation {
  const neighbour = { linkIndex: pickEthernet(random), address: random.pick(ADDRESSES) };
  const text = `delete neighbour ${formatAddress(neighbour.address)} on ${neighbour.linkIndex}`;
  return request(side, text, () => deleteNeighbour(neighbour));
}

function putEntry(random: Random, side: Side): Operation {
  const entry = pickEntry(random);
  const text = `entry ${entry.mac.toHex()} ${formatAddress(entry.remote)} on ${entry.linkIndex}`;
  return request(side, text, () => setForwardingEntry(entry));
}

function dropEntry(random: Random, side: Side): Operation {
  const entry = pickEntry(random);
  const text = `delete entry ${entry.mac.toHex()} ${formatAddress(entry.remote)} on ${entry.linkIndex}`;
  return request(side, text, () => deleteForwardingEntry(entry));
}

function lookUp(random: Random, side: Side): Operation {
  const asked = random.pick(ADDRESSES);
  return { side, kind: "look up", text: `look up ${formatAddress(asked)}`, address: asked };
}

function pickEntry(random: Random) {
  const remote = random.pick([address("192.168.5.2"), address("192.168.5.3"), address("fd05::2")]);
  return { linkIndex: random.pick(INDEXES), mac: pickMac(random), remote };
}

function pickAddress(random: Random) {
  const picked = random.pick(ADDRESSES);
  return { linkIndex: random.pick(INDEXES), address: picked, length: random.pick(LENGTHS[picked.family]) };
}

function pickDestination(random: Random) {
  const picked = random.pick(ADDRESSES);
  const length = random.pick(LENGTHS[picked.family]);
  // IPv4 refuses a destination with bits behind its length.
  return random.chance(0.95) ? prefixAround(picked, length) : { network: picked, length };
}

function pickRoute(random: Random): Route {
  const destination = pickDestination(random);
  const { family } = destination.network;
  const kind = random.pick(["unicast", "unicast", "unicast", "blackhole", "unreachable", "throw"] as const);
  const isUnicast = kind === "unicast" ? random.chance(0.95) : random.chance(0.05);
  const table = random.pick(TABLES);
  return {
    destination,
    ...(random.chance(0.8) ? { kind } : {}),
    ...(isUnicast && random.chance(0.8) ? { linkIndex: random.pick(INDEXES) } : {}),
    ...(isUnicast && random.chance(0.5)
      ? { gateway: random.pick(ADDRESSES.filter((each) => each.family === family)) }
      : {}),
    ...(random.chance(0.2) ? { isOnLink: true } : {}),
    ...(random.chance(0.5) ? { scope: random.pick(["link", "universe", "link", "host"] as const) } : {}),
    ...(table === MAIN ? {} : { table }),
    ...(random.chance(0.7) ? { protocol: random.pick([86, 4]) } : {}),
    ...(random.chance(0.3) ? { priority: random.pick([1, 1024, 2002]) } : {}),
    ...(random.chance(0.1) ? { preferredSource: random.pick(ADDRESSES.filter((each) => each.family === family)) } : {}),
    ...(random.chance(0.1) ? { mtu: random.pick([1400, 80_000]) } : {}),
    ...(random.chance(0.1) ? { advertisedSegment: 1300 } : {}),
  };
}

function describeRoute({ destination, gateway, preferredSource, ...rest }: Route): string {
  const to = `${formatAddress(destination.network)}/${destination.length}`;
  const by = gateway === undefined ? "" : ` by ${formatAddress(gateway)}`;
  const from = preferredSource === undefined ? "" : ` from ${formatAddress(preferredSource)}`;
  return `${to}${by}${from} ${JSON.stringify(rest)}`;
}

function pickLink(random: Random): LinkReference {
  const name = random.pick(NAMES);
  return random.chance(0.3) ? { name } : { name, index: random.pick(INDEXES) };
}

/** Not the loopback interface, where nobody has neighbours. */
function pickEthernet(random: Random): number {
  return random.pick(INDEXES.slice(1));
}

function pickMac(random: Random): Uint8Array {
  const text = random.chance(0.97) ? random.pick(MACS.slice(0, -1)) : random.pick(MACS);
  return Uint8Array.fromHex(text);
}
