/** A log group of the real kernel: what rules report, one listener at a time, and an end to each reading. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type GroupListener, listenToGroup } from "../../src/linux/log-group.ts";
import { closeNetns, type Netns, runInNetns } from "../../src/linux/netns.ts";
import { requireNetns } from "../support/namespace-sockets.ts";
import { canMakeNetns, NetnsArea, runIn, type TestNetns } from "../support/netns.ts";

const area = new NetnsArea("lg");
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
    runIn(place, ["nft", "-f", "-"], `table inet t { chain c { type filter hook output priority 0; ${rule}; }; }`);
  });
  afterAll(() => {
    closeNetns(netns);
    area.sweep();
  });

  const listen = () => runInNetns(netns, () => listenToGroup(GROUP, LOCK));
  // The rule drops it, so the shell fails to write.
  const send = () => runIn(place, ["bash", "-c", "echo x > /dev/udp/127.0.0.1/5301 || true"]);
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
});
