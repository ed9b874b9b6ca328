import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { forgetConnections } from "../../src/linux/conntrack.ts";
import { closeNetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, openNetns, runInNetns } from "../../src/linux/netns.ts";
import { readSysctl } from "../../src/linux/sysctl.ts";
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
    const opened = openNetns(place.path);
    if (opened === undefined) throw new Error("the namespace was not created");
    netns = opened;
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
});
