import { describe, expect, test } from "bun:test";
import { bgpSession } from "../../../test/support/bgp-plan.ts";
import { SessionWatch } from "./session-watch.ts";

const NOW = new Date("2026-11-16T12:10:00Z");
const LATER = new Date("2026-11-16T12:11:00Z");
const [TWO, NINE] = [bgpSession("10.0.0.2"), bgpSession("10.0.0.9", { peerAs: 65000, from: "router" })];
const up = { name: TWO.name, state: "up", since: "2026-11-16 12:03:57", info: "Established" };

function nine(info: string, since = "2100-01-01 00:00:00") {
  return { name: NINE.name, state: "start", since, info };
}

describe("SessionWatch", () => {
  test("counts what is established, and names the others with state and last error", () => {
    const found = [up, nine("Active Socket: Connection refused")];

    expect(new SessionWatch().look([TWO, NINE], found, NOW)).toEqual({
      sessions: { wanted: 2, established: 1 },
      down: [
        {
          ...{ address: "10.0.0.9", asNumber: 65000, peer: "router", state: "Active" },
          ...{ since: NOW.toISOString(), lastError: "Socket: Connection refused" },
        },
      ],
    });
  });

  test("keeps since when a session is down, and its last error, while it is tried again", () => {
    const watch = new SessionWatch();
    watch.look([NINE], [nine("Idle BGP Error: Hold timer expired")], NOW);
    const { down } = watch.look([NINE], [nine("Connect", "2026-11-16 12:10:30")], LATER);
    expect(down).toMatchObject([
      { state: "Connect", since: NOW.toISOString(), lastError: "BGP Error: Hold timer expired" },
    ]);

    watch.look([NINE], [{ ...nine("Established"), state: "up" }], LATER);
    expect(watch.look([NINE], [nine("Active")], LATER).down).toEqual([
      { address: "10.0.0.9", asNumber: 65000, peer: "router", state: "Active", since: LATER.toISOString() },
    ]);
  });

  test("believes BIRD since when a session is down that this agent has not seen before", () => {
    const local = "2026-11-15 09:00:00";
    const [down] = new SessionWatch().look([NINE], [nine("Active", local)], NOW).down;

    expect(down?.since).toBe(new Date(local.replace(" ", "T")).toISOString());
  });

  test("has no established session without BIRD, or that BIRD does not know", () => {
    expect(new SessionWatch().look([TWO, NINE], undefined, NOW).sessions).toEqual({ wanted: 2, established: 0 });
    expect(new SessionWatch().look([TWO, NINE], [up], NOW).down).toMatchObject([
      { address: "10.0.0.9", state: "not in BIRD" },
    ]);
  });
});
