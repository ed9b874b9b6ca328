import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isRefused, ReplyReader } from "./replies.ts";
import { readRoutes } from "./routes-status.ts";
import { readSessions } from "./sessions-status.ts";

const GREETING = "0001 BIRD 2.0.12 ready.\n";
const STATUS = "1000-BIRD 2.0.12\n1011-Router ID is 10.0.0.1\n Hostname is vm\n0013 Daemon is up and running\n";
const WRONG = "9001 syntax error, unexpected CF_SYM_UNDEFINED\n";

describe("ReplyReader", () => {
  test("reads replies that arrive in any pieces", () => {
    const whole = GREETING + STATUS + WRONG;
    fc.assert(
      fc.property(fc.array(fc.nat(whole.length)), (cuts) => {
        const ends = [...cuts.toSorted((left, right) => left - right), whole.length];
        const reader = new ReplyReader();
        const replies = ends.flatMap((end, index) => reader.read(whole.slice(ends[index - 1] ?? 0, end)));

        expect(replies.map(({ code }) => code)).toEqual([1, 13, 9001]);
        expect(replies[1]?.lines).toEqual([
          "BIRD 2.0.12",
          "Router ID is 10.0.0.1",
          "Hostname is vm",
          "Daemon is up and running",
        ]);
        expect(replies.map(isRefused)).toEqual([false, false, true]);
      }),
    );
  });
});

describe("readSessions()", () => {
  test("reads the sessions of both families, established and not", () => {
    const sessions = readSessions(
      `Name       Proto      Table      State  Since         Info
device1    Device     ---        up     2026-11-16 12:04:00  

Mesh_10_0_0_2 BGP        ---        up     2026-11-16 12:03:57  Established   
  Description:    node-to-node mesh: node-2
  BGP state:          Established
    Neighbor address: 10.0.0.2
    Neighbor AS:      64512
  Channel ipv4
    Routes:         3 imported, 1 filtered, 2 exported, 3 preferred
    Import limit:   10000 [HIT]
      Action:       block

Global_fd00__7 BGP        ---        start  2026-11-16 12:05:00  Active        Socket: Connection refused
  Description:    global: tor: one
  BGP state:          Active
    Neighbor address: fd00::7
    Neighbor AS:      65000
  Channel ipv6
    State:          DOWN

kernel4    Kernel     master4    up     2026-11-16 12:04:00  
  Channel ipv4
    Routes:         9 imported, 9 exported, 3 preferred
`.split("\n"),
    );

    expect(sessions).toEqual([
      {
        ...{ name: "Mesh_10_0_0_2", type: "node-to-node mesh", peer: "node-2", address: "10.0.0.2", peerAs: "64512" },
        ...{ state: "up", since: "2026-11-16 12:03:57", info: "Established", routes: { imported: 3, exported: 2 } },
        isLimitHit: true,
      },
      {
        ...{ name: "Global_fd00__7", type: "global", peer: "tor: one", address: "fd00::7", peerAs: "65000" },
        ...{ state: "start", since: "2026-11-16 12:05:00", info: "Active Socket: Connection refused" },
        routes: { imported: 0, exported: 0 },
        isLimitHit: false,
      },
    ]);
  });
});

describe("readRoutes()", () => {
  test("reads routes with one hop, several and none, and several routes to one destination", () => {
    const routes = readRoutes(
      `Table master4:
10.244.1.0/26        blackhole [own4 2026-11-16 12:05:37] * (200)
	Type: static univ
10.244.2.0/26        unicast [Mesh_10_0_0_2 2026-11-16 12:05:39 from 10.0.0.9] * (100/10) [AS65000i]
	via 10.0.0.2 on eth0 weight 1
	via 10.0.0.3 on eth0 weight 1
	Type: BGP univ
	BGP.origin: IGP
	BGP.as_path: 65000 65001
                     unreachable [Mesh_10_0_0_3 2026-11-16 12:05:40] (100) [i]
	Type: BGP univ

Table master6:
fd00::/64            unicast [direct1 2026-11-16 12:05:37] * (240)
	dev eth0
	Type: device univ`.split("\n"),
    );

    expect(routes).toEqual([
      {
        ...{
          destination: "10.244.1.0/26",
          kind: "blackhole",
          hops: [],
          protocol: "own4",
          since: "2026-11-16 12:05:37",
        },
        ...{ isBest: true, source: "static", asPath: "" },
      },
      {
        ...{ destination: "10.244.2.0/26", kind: "unicast", protocol: "Mesh_10_0_0_2", since: "2026-11-16 12:05:39" },
        ...{ isBest: true, source: "BGP", asPath: "65000 65001" },
        hops: [
          { gateway: "10.0.0.2", link: "eth0" },
          { gateway: "10.0.0.3", link: "eth0" },
        ],
      },
      {
        ...{
          destination: "10.244.2.0/26",
          kind: "unreachable",
          protocol: "Mesh_10_0_0_3",
          since: "2026-11-16 12:05:40",
        },
        ...{ isBest: false, source: "BGP", asPath: "", hops: [] },
      },
      {
        ...{ destination: "fd00::/64", kind: "unicast", protocol: "direct1", since: "2026-11-16 12:05:37" },
        ...{ isBest: true, source: "device", asPath: "", hops: [{ link: "eth0" }] },
      },
    ]);
  });
});
