/** The agent follows the interfaces of the host and their addresses, in a real kernel. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { HostInterfaces } from "../../src/agent/policy/host-interfaces.ts";
import { identity } from "../../src/identity.ts";
import { formatAddress } from "../../src/ip/address.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import type { HostInterface } from "../../src/policy/host-interface.ts";
import { insideNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";
import { pollUntil } from "../support/poll.ts";

const area = new NetnsArea("hostifs");
const why = canMakeNetns ? "" : " (skipped: needs root, ip and nsenter)";

describe.skipIf(!canMakeNetns)(`HostInterfaces in a private namespace${why}`, () => {
  let place: TestNetns;
  let stop: AbortController;
  let ended: Promise<void>;
  let interfaces: HostInterfaces;
  let calls: (readonly HostInterface[])[];
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());
  beforeEach(() => {
    place = area.create();
    ip("link add eth0 type veth peer name other");
    ip("address add 192.0.2.7/24 dev eth0");
    calls = [];
    stop = new AbortController();
    interfaces = new HostInterfaces(ownSockets, (now) => void calls.push(now));
    ended = interfaces.run(stop.signal);
  });
  afterEach(async () => {
    stop.abort();
    await ended;
    area.delete(place);
  });

  const ip = (...lines: readonly string[]) => runIn(place, ["ip", "-batch", "-"], lines.join("\n"));
  const follow = (isNeeded: boolean) => insideNetns(place.path, () => interfaces.follow(isNeeded));
  const textOf = (list: readonly HostInterface[] | undefined) =>
    (list ?? []).map(({ name, addresses }) => [name, ...addresses.map(formatAddress)].join(" "));
  const last = () => textOf(calls.at(-1));
  const until = (line: string) => pollUntil(() => last().includes(line), line);

  test("returns them when they are needed, and again only after they were not", () => {
    const list = ["eth0 192.0.2.7", "lo 127.0.0.1 ::1", "other"];

    expect(textOf(follow(true))).toEqual(list);
    expect(follow(true)).toBeUndefined();
    expect(follow(false)).toBeUndefined();
    expect(textOf(follow(true))).toEqual(list);
  });

  test("reports addresses, links and names that change, of both families", async () => {
    follow(true);
    ip("address add 192.0.2.8/24 dev eth0");
    await until("eth0 192.0.2.7 192.0.2.8");
    ip("address add 2001:db8::7/64 dev eth0 nodad");
    await until("eth0 192.0.2.7 192.0.2.8 2001:db8::7");
    ip("address flush dev eth0");
    await until("eth0");
    ip("link set eth0 name eth1", "address add 192.0.2.9/24 dev eth1");
    await until("eth1 192.0.2.9");
    ip("link delete eth1");
    await until("lo 127.0.0.1 ::1");
    await pollUntil(() => last().length === 1, "only the loopback interface");
  });

  test("reports neither interfaces of workloads nor changes that do not matter", async () => {
    follow(true);
    const names = Array.from({ length: 10 }, (_, index) => `${identity.interfacePrefix}${index}`);
    ip(...names.flatMap((name) => [`link add ${name} type ifb`, `link set ${name} up`]));
    ip(...names.map((name) => `link delete ${name}`));
    ip("link set eth0 mtu 1400", "link set eth0 up", "link set eth0 down");
    ip("address add 192.0.2.8/24 dev eth0");
    await until("eth0 192.0.2.7 192.0.2.8");

    expect(calls).toHaveLength(1);
  });

  test("misses nothing if the kernel has more messages than fit into the buffer", async () => {
    follow(true);
    // Nothing is read while this runs.
    ip(...Array.from({ length: 3_000 }, (_, index) => `link set eth0 mtu ${1_000 + (index % 2)}`));
    ip("address add 192.0.2.8/24 dev eth0");
    await until("eth0 192.0.2.7 192.0.2.8");
    ip("address delete 192.0.2.8/24 dev eth0");
    await until("eth0 192.0.2.7");
  });

  test("ends when it is not needed any more, and follows again", async () => {
    follow(true);
    follow(false);
    ip("address add 192.0.2.8/24 dev eth0");
    follow(true);
    ip("address add 192.0.2.9/24 dev eth0");
    await until("eth0 192.0.2.7 192.0.2.8 192.0.2.9");

    expect(calls).toHaveLength(1);
  });
});
