/** A log group of the real kernel: what rules report, one listener at a time, connections if it tells them, and an end to each reading. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { type GroupListener, listenToGroup } from "../../src/linux/log-group.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { readWholeHead } from "../../src/linux/packet-head.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("lg");
const KERNEL_CONFIG = "/proc/config.gz";
const [GROUP, LOCK] = [30_400, 30_401];
const able = canMakeNetns && Bun.which("nft") !== null && Bun.which("bash") !== null;

describe.skipIf(!able)(`listenToGroup()${able ? "" : " (skipped: needs root, ip, nsenter, nft and bash)"}`, () => {
  let place: TestNetns;
  let netns: Netns;

  beforeAll(() => {
    area.sweep();
    place = area.create();
    netns = requireNetns(place.path);
    const rule = `udp dport 5301 log prefix "${"é".repeat(60)}" group ${GROUP} drop`;
    const translation = "ip daddr 127.0.0.7 udp dport 5300 dnat ip to 127.0.0.8:5301";
    const rules = `table inet t {
      chain c { type filter hook output priority 0; udp dport 5301 ct label set 40; ${rule}; }
      chain n { type nat hook output priority -100; ${translation}; }
    }`;
    runIn(place, ["nft", "-f", "-"], rules);
  });
  afterAll(() => {
    closeNetns(netns);
    area.sweep();
  });

  const listen = () => runInNetns(netns, () => listenToGroup(GROUP, { lock: LOCK }));
  // The rule drops it, so the shell fails to write.
  const send = (to = "127.0.0.1/5301") => runIn(place, ["bash", "-c", `echo x > /dev/udp/${to} || true`]);
  const packetsOf = async (listener: GroupListener, wanted: number) => {
    const found = [];
    for (let round = 0; round < 100 && found.length < wanted; round++) {
      found.push(...listener.read().packets);
      await Bun.sleep(10);
    }
    return found;
  };

  test("refuses a second listener, also while the first one pauses, and none after it", async () => {
    const first = listen();
    expect(listen).toThrow("EPERM");
    first.pause();
    expect(listen).toThrow("EPERM");
    runInNetns(netns, first.resume);
    send();
    expect(await packetsOf(first, 1)).toMatchObject([{ prefix: "é".repeat(60) }]);
    first.close();
    listen().close();
  });

  test("shows nothing of what is dropped during a pause", async () => {
    const listener = listen();
    listener.pause();
    send();
    expect(listener.read()).toEqual({ packets: [], hasLost: false });
    runInNetns(netns, listener.resume);
    send();
    expect(await packetsOf(listener, 1)).toHaveLength(1);
    listener.close();
  });

  test("tells the connection before its translation, with its label, unless the kernel was built without that", async () => {
    const listener = runInNetns(netns, () => listenToGroup(GROUP, { withConnections: true }));
    send("127.0.0.7/5300");
    const [packet] = await packetsOf(listener, 1);
    listener.close();
    const { connection } = packet ?? {};

    expect(packet && readWholeHead(packet.bytes)?.destination.port).toBe(5301);
    const config = kernelSetting("CONFIG_NETFILTER_NETLINK_GLUE_CT");
    if (config !== undefined) expect(listener.hasConnections).toBe(config === "y");
    expect(connection === undefined).toBe(!listener.hasConnections);
    if (connection === undefined) return;
    expect(connection).toMatchObject({
      original: { protocol: 17, destinationPort: 5300 },
      reply: { protocol: 17, sourcePort: 5301 },
    });
    expect([connection.original.destination[0], connection.reply.source[0]]).toEqual([0x7f000007, 0x7f000008]);
    expect([...connection.label]).toEqual([0, 1 << 8, 0, 0]);
  });

  test("tells no connections if nobody has asked for them", async () => {
    const listener = listen();
    send();
    expect(Object.keys((await packetsOf(listener, 1))[0] ?? {})).not.toContain("connection");
    expect(listener.hasConnections).toBe(false);
    listener.close();
  });
});

/** Of the running kernel: `y`, `m`, or `n` if it is not set. `undefined`: the kernel does not say. */
function kernelSetting(name: string): string | undefined {
  if (!existsSync(KERNEL_CONFIG)) return undefined;
  const text = new TextDecoder().decode(gunzipSync(readFileSync(KERNEL_CONFIG)));
  return new RegExp(`^${name}=(.)$`, "m").exec(text)?.[1] ?? "n";
}
