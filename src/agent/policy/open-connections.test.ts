import { describe, expect, test } from "bun:test";
import { ownSockets } from "../../linux/netlink-socket.ts";
import type { PolicyChanges } from "../../policy/inputs.ts";
import { ConnectionEnder } from "./end-connections.ts";
import { OpenConnections } from "./open-connections.ts";

const NO_CHANGES: PolicyChanges = {
  ...{ endpoints: [], containerLabels: [], hostEndpoints: [], profiles: [], networkPolicies: [] },
  ...{ globalNetworkPolicies: [], networkSets: [], globalNetworkSets: [], tiers: [], configurations: [] },
  serviceEndpoints: [],
};

/** Time passes with each wait of the loop; one that only a change ends lasts until there is one. */
function follow(enforced: () => undefined) {
  const stop = new AbortController();
  const waits: number[] = [];
  const reports: string[] = [];
  const ender = new ConnectionEnder({
    ...{ kernel: ownSockets, openProber: undefined, elapsed: () => 0, report: (message) => reports.push(message) },
  });
  const wait = async (milliseconds: number, signal: AbortSignal) => {
    waits.push(milliseconds);
    await Promise.resolve();
    if (milliseconds <= 1_000 || signal.aborted) return;
    await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  };
  const open = new OpenConnections({
    ...{ kernel: ownSockets, clock: { elapsed: () => 0, wait }, enforced, ender },
    ...{ ended: () => {}, report: (message) => reports.push(message) },
  });
  return { open, stop, waits, reports, done: () => open.run(stop.signal) };
}

describe("looks at open connections that fail", () => {
  const failing = (enforced: () => undefined) => async () => {
    let looks = 0;
    const { open, stop, reports, done } = follow(() => {
      looks += 1;
      if (looks === 5) stop.abort();
      return enforced();
    });
    open.changed(true, [NO_CHANGES]);
    await done();
    expect(looks).toBe(5);
    expect(new Set(reports).size).toBe(1);
  };

  test(
    "are made again when what is enforced is not known",
    failing(() => undefined),
  );
  test(
    "are made again when they throw",
    failing(() => {
      throw new Error("no links");
    }),
  );

  test("are not made any more when connections stay open", async () => {
    let looks = 0;
    const { open, stop, waits, done } = follow(() => {
      looks += 1;
      open.changed(false, []);
      throw new Error("no links");
    });
    open.changed(true, [NO_CHANGES]);
    const ended = done();
    while (!waits.slice(1).some((each) => each > 1_000)) await Promise.resolve();
    stop.abort();
    await ended;
    expect(looks).toBe(1);
  });
});
