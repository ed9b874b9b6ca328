import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { listConnections } from "../../src/agent/policy/list-connections.ts";
import { forgetConnections } from "../../src/linux/conntrack.ts";
import { forgetConnectionsOf, removeListed } from "../../src/linux/conntrack-entries.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, runInNetns } from "../../src/linux/netns.ts";
import { readSysctl } from "../../src/linux/sysctl.ts";
import { openDatagramSocket, openEchoSocket, SMALL_PACKET } from "../../src/linux/unchecked-datagrams.ts";
import { address } from "../support/ipam.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("ct");
const UDP = 17;
const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;

describe.skipIf(!able)(`forgetConnections()${able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)"}`, () => {
  let place: TestNetns;
  let netns: Netns;

  beforeAll(() => {
    area.sweep();
    place = area.create();
    netns = requireNetns(place.path);
    // Nothing is tracked until a rule needs it.
    runIn(
      place,
      ["nft", "-f", "-"],
      "table inet t { chain c { type filter hook output priority 0; ct state new accept; }; }",
    );
  });
  afterAll(() => {
    closeNetns(netns);
    area.sweep();
  });

  const tracked = () => Number(runInNetns(netns, () => readSysctl("net/netfilter/nf_conntrack_count")));
  const send = (address: string, port: number) => runIn(place, ["bash", "-c", `echo x > /dev/udp/${address}/${port}`]);

  test("removes the entries that match protocol and port in the family, and nothing else", () => {
    for (const port of [5301, 5302]) for (const address of ["127.0.0.1", "::1"]) send(address, port);
    expect(tracked()).toBe(4);

    const socket = openNetlinkSocketIn(netns, "netfilter");
    forgetConnections(socket, [{ family: 4, protocol: UDP, destinationPort: 5301 }]);
    expect(tracked()).toBe(3);
    forgetConnections(socket, [{ family: 4, protocol: UDP, destinationPort: 5301 }]);
    forgetConnections(socket, [{ family: 4, protocol: 6, destinationPort: 5302 }]);
    expect(tracked()).toBe(3);
    forgetConnections(socket, [
      { family: 6, protocol: UDP, destinationPort: 5301 },
      { family: 4, destination: { family: 4, value: 0x7f000002n } },
      { family: 4, destination: { family: 4, value: 0x7f000001n } },
    ]);
    expect(tracked()).toBe(1);
    closeNetlinkSocket(socket);
  });

  test("removes the entries of the side that answers, which after DNAT is not the destination", () => {
    runIn(
      place,
      ["nft", "-f", "-"],
      "table ip n { chain c { type nat hook output priority -100; ip daddr 127.0.0.7 dnat to 127.0.0.8; }; }",
    );
    const socket = openNetlinkSocketIn(netns, "netfilter");
    const before = tracked();
    for (const address of ["127.0.0.7", "127.0.0.9"]) send(address, 5303);
    expect(tracked()).toBe(before + 2);
    const answering = (value: bigint) => ({ family: 4, replySource: { family: 4, value } }) as const;
    forgetConnections(socket, [{ family: 4, destination: { family: 4, value: 0x7f000008n } }, answering(0x7f000007n)]);
    expect(tracked()).toBe(before + 2);
    forgetConnections(socket, [answering(0x7f000008n)]);
    expect(tracked()).toBe(before + 1);
    forgetConnections(socket, [answering(0x7f000009n)]);
    expect(tracked()).toBe(before);
    closeNetlinkSocket(socket);
  });

  test("forgetConnectionsOf() removes those that one of many addresses has opened or answers, with one list", async () => {
    const socket = openNetlinkSocketIn(netns, "netfilter");
    const before = tracked();
    // Opened by 127.0.0.1 and ::1, and answered by these.
    for (const target of ["127.0.0.21", "127.0.0.22", "127.0.0.7", "::1"]) send(target, 5304);
    expect(tracked()).toBe(before + 4);
    let pauses = 0;
    const forget = (...texts: readonly string[]) =>
      forgetConnectionsOf(socket, texts.map(address), async () => {
        pauses += 1;
      });

    expect(await forget("127.0.0.99", "fd00::1")).toBe(0);
    // 127.0.0.8 answers for 127.0.0.7.
    expect(await forget("127.0.0.21", "127.0.0.99", "127.0.0.8", "127.0.0.7", "fd00::1")).toBe(2);
    expect(tracked()).toBe(before + 2);
    expect(await forget("::1")).toBeGreaterThan(0);
    expect(await forget("127.0.0.1")).toBeGreaterThan(0);
    expect(await forget("127.0.0.1", "::1", "127.0.0.22")).toBe(0);
    expect(pauses).toBeGreaterThan(0);
    closeNetlinkSocket(socket);
  });

  const listedTo = async (socket: NetlinkSocket, ...destinations: readonly string[]) => {
    const all = await listConnections(socket, { isWanted: () => true, pause: async () => {} });
    return destinations.map((text) => {
      const found = all.find(({ addresses }) => addresses[2] === text);
      if (found === undefined) throw new Error(`no connection to ${text}`);
      return found;
    });
  };

  test("removeListed() removes those of every protocol and of both families", async () => {
    const socket = openNetlinkSocketIn(netns, "netfilter");
    forgetConnections(socket, [{ family: 4 }]);
    await forgetConnectionsOf(socket, [address("::1")], async () => {});
    expect(tracked()).toBe(0);
    send("127.0.0.51", 5307);
    for (const to of ["127.0.0.52", "::1"]) {
      const echo = runInNetns(netns, () => openEchoSocket(address(to)));
      echo.ask(SMALL_PACKET);
      echo.close();
    }
    const listed = await listedTo(socket, "127.0.0.51", "127.0.0.52", "::1");
    expect(listed.map(({ connection: { protocol } }) => protocol)).toEqual([UDP, 1, 58]);
    expect(removeListed(socket, listed)).toEqual(listed);
    expect(tracked()).toBe(0);
    expect(removeListed(socket, listed)).toEqual([]);
    closeNetlinkSocket(socket);
  });

  test("removeListed() leaves one with the same ends that was translated to another one since", async () => {
    const socket = openNetlinkSocketIn(netns, "netfilter");
    const translate = (to: string) =>
      runIn(
        place,
        ["nft", "-f", "-"],
        `table ip m; delete table ip m; table ip m { chain c { type nat hook output priority -101; ip daddr 127.0.0.61 dnat to ${to}; }; }`,
      );
    const from = runInNetns(netns, () => openDatagramSocket(address("127.0.0.61"), 5308));
    const listTranslated = async (to: string) => {
      translate(to);
      // The first one may only fetch the error about the one before.
      for (let count = 0; count < 2; count++) from.ask(SMALL_PACKET);
      const [found] = await listedTo(socket, "127.0.0.61");
      expect(found?.addresses[1]).toBe(to);
      return found === undefined ? [] : [found];
    };
    const former = await listTranslated("127.0.0.62");
    expect(removeListed(socket, former)).toEqual(former);
    const present = await listTranslated("127.0.0.63");
    // The kernel often gives it the same number.
    expect(removeListed(socket, [...former, ...former.map((each) => ({ ...each, id: present[0]?.id ?? 0 }))])).toEqual(
      [],
    );
    expect(await listedTo(socket, "127.0.0.61")).toEqual(present);
    expect(removeListed(socket, present)).toEqual(present);
    from.close();
    closeNetlinkSocket(socket);
  });

  test("listConnections() has those of both families, and none of another zone", async () => {
    const rules = [
      "ip daddr 127.0.0.31 ct zone set 7",
      "ip daddr 127.0.0.32 ct original zone set 7",
      "ip daddr 127.0.0.33 ct reply zone set 7",
      "ip6 daddr ::1 udp dport 5306 ct zone set 7",
    ].join("; ");
    runIn(place, ["nft", "-f", "-"], `table inet z { chain c { type filter hook output priority -300; ${rules}; }; }`);
    for (const last of [31, 32, 33, 34]) send(`127.0.0.${last}`, 5305);
    for (const port of [5305, 5306]) send("::1", port);
    const socket = openNetlinkSocketIn(netns, "netfilter");
    const all = await listConnections(socket, { isWanted: () => true, pause: async () => {} });
    const ports = new Set([5305, 5306]);
    const found = all.filter(({ connection: { ports: own } }) => own !== undefined && ports.has(own.destination));
    expect(found.map(({ addresses }) => addresses[2])).toEqual(["127.0.0.34", "::1"]);
    closeNetlinkSocket(socket);
  });
});
