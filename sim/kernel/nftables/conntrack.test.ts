import { describe, expect, test } from "bun:test";
import { type Address, formatAddress } from "../../../src/ip/address.ts";
import { type ConntrackFilter, forgetConnections } from "../../../src/linux/conntrack.ts";
import { forgetConnectionsOf } from "../../../src/linux/conntrack-entries.ts";
import { closeNetlinkSocket, dump, type NetlinkSocket } from "../../../src/linux/netlink-socket.ts";
import { closeNetns, openNetlinkSocketIn } from "../../../src/linux/netns.ts";
import { address } from "../../../test/support/ip.ts";
import { requireNetns } from "../../../test/support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../../../test/support/netns.ts";
import { Random } from "../../schedule/random.ts";
import { CONNTRACK, readTuple, type Tuple } from "./conntrack.ts";
import { ModelSockets } from "./model-sockets.ts";

const [TCP, UDP] = [6, 17];
const HEADER_LENGTH = 4;

function tuple(source: string, destination: string, more: Partial<Tuple> = {}): Tuple {
  const ports = { sourcePort: 40_000, destinationPort: 53 };
  return { source: address(source), destination: address(destination), protocol: UDP, ...ports, ...more };
}

describe("Connections", () => {
  test("a packet is new until the other end has answered, and again when the time of the entry is over", () => {
    const sockets = new ModelSockets();
    const { connections } = sockets.state;
    const [there, back] = [tuple("10.0.0.1", "10.0.0.2"), tuple("10.0.0.2", "10.0.0.1", BACK)];

    connections.track(there);
    expect([there, back].map((packet) => connections.stateOf(packet))).toEqual(["new", "established"]);
    connections.track(back);
    expect(connections.stateOf(there)).toBe("established");
    expect(connections.stateOf(tuple("10.0.0.1", "10.0.0.2", { sourcePort: 1 }))).toBe("new");
    sockets.now = 119_000;
    connections.track(there);
    sockets.now = 238_000;
    expect(connections.stateOf(there)).toBe("established");
    sockets.now = 240_000;
    expect(connections.stateOf(there)).toBe("new");
    expect(connections.list()).toEqual([]);
  });

  test("TCP is tracked for days, and an unanswered UDP packet for half a minute", () => {
    const sockets = new ModelSockets();
    const { connections } = sockets.state;
    connections.track(tuple("10.0.0.1", "10.0.0.2"));
    connections.track(tuple("10.0.0.1", "10.0.0.2", { protocol: TCP }));
    connections.track(tuple("10.0.0.2", "10.0.0.1", { ...BACK, protocol: TCP }));

    sockets.now = 31_000;
    expect(connections.list().map(({ original }) => original.protocol)).toEqual([TCP]);
    sockets.now = 24 * 60 * 60_000;
    expect(connections.list()).toHaveLength(1);
  });
});

const BACK = { sourcePort: 53, destinationPort: 40_000 };

const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;

describe.skipIf(!able)(
  `the model of conntrack${able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)"}`,
  () => {
    test("lists and deletes what the kernel of this machine does", async () => {
      const area = new NetnsArea("ctmodel");
      const place = area.create();
      const netns = requireNetns(place.path);
      const real = openNetlinkSocketIn(netns, "netfilter");
      try {
        // Nothing is tracked until a rule needs it.
        const rules = "table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }";
        runIn(place, ["nft", "-f", "-"], rules);
        for (let seed = 1; seed <= 8; seed++) await compare(place, real, new Random(seed));
      } finally {
        closeNetlinkSocket(real);
        closeNetns(netns);
        area.sweep();
      }
    });
  },
);

const ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "::1"];
const PORTS = [5301, 5302];

async function compare(place: TestNetns, real: NetlinkSocket, random: Random): Promise<void> {
  // To itself, so that both directions are the same for some.
  const targets = Array.from({ length: 12 }, () => `/dev/udp/${random.pick(ADDRESSES)}/${random.pick(PORTS)}`);
  runIn(place, ["bash", "-c", targets.map((target) => `echo x > ${target}`).join("; ")]);
  const sockets = new ModelSockets();
  const model = sockets.open();
  for (const { original } of list(real)) sockets.state.connections.track(original);
  expect(texts(model)).toEqual(texts(real));
  for (let step = 0; step < 4; step++) {
    const addresses = [random.pick(ADDRESSES), random.pick(ADDRESSES)].map(address);
    const filter = randomFilter(random);
    for (const socket of [real, model]) {
      if (step % 2 === 0) forgetConnections(socket, [filter]);
      else await forgetConnectionsOf(socket, addresses, async () => {});
    }
    expect(texts(model)).toEqual(texts(real));
  }
  const all = [4, 6] as const;
  for (const socket of [real, model])
    forgetConnections(
      socket,
      all.map((family) => ({ family })),
    );
  expect(texts(real)).toEqual([]);
  expect(texts(model)).toEqual([]);
}

/** Of IPv4: the kernel compares the addresses of IPv6 wrongly. */
function randomFilter(random: Random): ConntrackFilter {
  const some = (): Address => address(random.pick(ADDRESSES.slice(0, 3)));
  return {
    family: 4,
    ...(random.chance(0.4) ? { source: some() } : {}),
    ...(random.chance(0.4) ? { destination: some() } : {}),
    ...(random.chance(0.4) ? { replySource: some() } : {}),
    ...(random.chance(0.5) ? { protocol: UDP, destinationPort: random.pick(PORTS) } : {}),
  };
}

interface Listed {
  readonly original: Tuple;
  /** The attributes of both directions, as they were sent. */
  readonly bytes: string;
}

function list(socket: NetlinkSocket): readonly Listed[] {
  const write = (family: number) => (writer: { raw(bytes: Uint8Array): void }) =>
    writer.raw(Uint8Array.of(family, 0, 0, 0));
  return [2, 10].flatMap((family) =>
    dump(
      socket,
      { action: "list tracked connections", type: CONNTRACK | 1, flags: 0, write: write(family) },
      (message) => {
        const found: Uint8Array[] = [];
        let original: Partial<Tuple> = {};
        const attributes = message.attributes(HEADER_LENGTH);
        while (attributes.next()) {
          if (attributes.type === 1) original = readTuple(attributes.nested());
          if (attributes.type === 1 || attributes.type === 2) found.push(attributes.copy());
        }
        return { original: original as Tuple, bytes: found.map((each) => each.toHex()).join(" ") };
      },
    ),
  );
}

function texts(socket: NetlinkSocket): readonly string[] {
  return list(socket)
    .map(({ original, bytes }) => `${formatAddress(original.source)} ${bytes}`)
    .toSorted();
}
