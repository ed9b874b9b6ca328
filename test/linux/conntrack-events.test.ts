/** What the real kernel tells of connections: events of the beginning and the end, and the table. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { type ConnectionEvents, listenToConnections, readConnectionTable } from "../../src/linux/conntrack-events.ts";
import type { TrackedMessage, TrackedTuple } from "../../src/linux/conntrack-message.ts";
import { hasLost } from "../../src/linux/netlink-group.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { writeSysctl } from "../../src/linux/sysctl.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";

const area = new NetnsArea("ce");
const [TCP, UDP, ICMPV6] = [6, 17, 58];
const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;

/** Label bits 40 and 70: the second and the third word. */
const RULES = `
  table inet t {
    chain c { type filter hook output priority 0; ct label set 40 ct label set 70 ct state new accept; }
    chain n { type nat hook output priority -100; ip daddr 127.0.0.7 tcp dport 80 dnat ip to 127.0.0.8:8080; }
    chain m { type nat hook postrouting priority 100; ip daddr 127.0.0.8 snat ip to 127.0.0.9; }
  }`;

interface Heard {
  readonly what: "begins" | "ended" | "entry";
  readonly family: number;
  readonly original: string;
  readonly reply: string;
  readonly label: readonly number[];
  readonly counts: readonly number[];
  readonly start: number;
  readonly stop: number;
}

function tupleWords({ protocol, source, destination, sourcePort, destinationPort }: TrackedTuple): string {
  const words = (address: Uint32Array) => [...address].map((word) => word.toString(16)).join(":");
  return `${protocol} ${words(source)} ${protocol === ICMPV6 ? "" : sourcePort} ${words(destination)} ${destinationPort}`;
}

function heard(what: Heard["what"], message: TrackedMessage): Heard {
  const { family, original, reply, label, start, stop } = message;
  const { sentPackets, sentBytes, receivedPackets, receivedBytes } = message;
  const counts = [sentPackets, sentBytes, receivedPackets, receivedBytes];
  return {
    what,
    family,
    original: tupleWords(original),
    reply: tupleWords(reply),
    label: [...label],
    counts,
    start,
    stop,
  };
}

describe.skipIf(!able)(`tracked connections${able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)"}`, () => {
  let place: TestNetns;
  let netns: Netns;
  let events: ConnectionEvents;
  let all: Heard[] = [];

  const readAll = () =>
    events.read(
      {
        begins: (message) => all.push(heard("begins", message)),
        ended: (message) => all.push(heard("ended", message)),
      },
      10_000,
    );
  const send = (protocol: "udp" | "tcp", address: string, port: number) =>
    runIn(place, ["bash", "-c", `echo x > /dev/${protocol}/${address}/${port} || true`]);

  beforeAll(() => {
    area.sweep();
    place = area.create();
    netns = requireNetns(place.path);
    runIn(place, ["nft", "-f", "-"], RULES);
    for (const setting of ["acct", "timestamp"])
      runInNetns(netns, () => writeSysctl(`net/netfilter/nf_conntrack_${setting}`, "1"));
    events = runInNetns(netns, () => listenToConnections(4 * 1024 * 1024));
  });
  afterAll(() => {
    events.close();
    closeNetns(netns);
    area.sweep();
  });
  beforeEach(() => {
    all = [];
  });

  test("the beginning has the label, the end has counters and times", async () => {
    const before = Date.now();
    send("tcp", "127.0.0.7", 80);
    await pollUntil(() => !hasLost(readAll()) && all.length >= 2, "two events");
    const [begun, ended] = all;
    expect(begun).toMatchObject({
      what: "begins",
      family: 4,
      label: [0, 1 << 8, 1 << 6, 0],
      counts: [0, 0, 0, 0],
      stop: 0,
    });
    expect(begun?.original).toMatch(/^6 7f000001:0:0:0 \d+ 7f000007:0:0:0 80$/);
    expect(begun?.reply).toMatch(/^6 7f000008:0:0:0 8080 7f000009:0:0:0 \d+$/);
    // Refused at once.
    expect(ended).toMatchObject({ what: "ended", label: [0, 0, 0, 0], counts: [1, 60, 1, 40] });
    expect(ended?.original).toBe(begun?.original ?? "");
    expect(ended?.start).toBeGreaterThanOrEqual(before - 1);
    expect(ended?.stop).toBeGreaterThanOrEqual(ended?.start ?? 0);
    expect(ended?.stop).toBeLessThan(Date.now() + 1);
  });

  test("the table has all of it, in both families, and ICMP has type and code in place of ports", async () => {
    send("udp", "127.0.0.1", 5301);
    send("udp", "::1", 5302);
    runIn(place, ["ping", "-c", "1", "::1"]);
    let pauses = 0;
    const reading = runInNetns(netns, () => ({
      done: readConnectionTable({
        entry: (message) => all.push(heard("entry", message)),
        pause: async () => {
          pauses += 1;
        },
      }),
    }));
    await reading.done;
    const found = all.map(({ original }) => original);
    expect(found).toContainEqual(expect.stringMatching(new RegExp(`^${UDP} 7f000001:0:0:0 \\d+ 7f000001:0:0:0 5301$`)));
    expect(found).toContainEqual(expect.stringMatching(new RegExp(`^${UDP} 0:0:0:1 \\d+ 0:0:0:1 5302$`)));
    expect(found).toContain(`${ICMPV6} 0:0:0:1  0:0:0:1 ${128 * 256}`);
    expect(found.filter((words) => words.startsWith(`${TCP} `))).toEqual([]);
    expect(all.find(({ original }) => original.includes("5301"))).toMatchObject({
      label: [0, 1 << 8, 1 << 6, 0],
      counts: [1, 30, 0, 0],
    });
    expect(pauses).toBeGreaterThan(0);
  });

  test("tells that events did not fit into the buffer", async () => {
    readAll();
    all = [];
    const small = runInNetns(netns, () => listenToConnections(8 * 1024));
    let count = 0;
    const add = () => void count++;
    const read = (most = 10_000) => small.read({ begins: add, ended: add }, most);
    expect(read()).toBe("complete");
    runIn(place, ["bash", "-c", "for port in {6000..6099}; do echo x > /dev/udp/127.0.0.1/$port; done"]);
    expect(read(3)).toBe("lost and more");
    expect(read()).toBe("complete");
    expect(count).toBeGreaterThan(0);
    expect(count).toBeLessThan(100);
    expect(read()).toBe("complete");
    small.close();
    // The other one had room for all of them.
    expect(hasLost(readAll())).toBe(false);
    expect(all.filter(({ what }) => what === "begins")).toHaveLength(100);
  });
});
