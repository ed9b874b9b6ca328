/** Requests while a policy is edited, and while the node agent or the sidecar is killed. */
import { expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import type { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import type { AlpSite } from "./alp-site.ts";
import { isThrough, type Outcome, type Stream, startLoad } from "./load.ts";
import { type Kill, killProcess } from "./processes.ts";
import { networkPolicy, type Row } from "./request-rows.ts";
import { PORTS } from "./served-pod.ts";

const KILLS = proofSize({ everyDay: 1, soak: 20 });
const EDITS = proofSize({ everyDay: 2, soak: 40 });
const EFFECT_MILLISECONDS = 1_000;
/** Usually less than one second; a busy machine needs more. Without recovery, requests fail until it is over. */
const RECOVERY_MILLISECONDS = 5_000;
/** Of each stream, before the disturbance. */
const REQUESTS_BEFORE = 10;

const LOAD: readonly Row[] = [
  { client: "frontend", method: "GET", path: "/public/a", outcome: "through" },
  { client: "frontend", identity: "shop/frontend", method: "POST", path: "/orders", outcome: "through" },
  { client: "batch", method: "POST", path: "/orders", outcome: "denied" },
  { client: "frontend", identity: "shop/batch", method: "POST", path: "/orders", outcome: "denied" },
  { client: "stranger", method: "DELETE", path: "/public", outcome: "denied" },
];

/** `site`: when the tests run. */
export function disturbedTests(test: ReturnType<typeof testNeeding>, site: () => AlpSite): void {
  test("follows a policy that is edited under load within a second", async () => {
    const { cluster, targetOf } = site();
    const question = { method: "GET", path: "/edited" };
    const load = startLoad([
      { target: targetOf("frontend"), question, connections: "kept" },
      { target: targetOf("frontend", "shop/frontend"), question, connections: "kept" },
      { target: targetOf("batch"), question, connections: "new" },
    ]);
    const http = { paths: [{ exact: question.path }] };
    const open = { action: "Allow", destination: { ports: [PORTS.plain, PORTS.mutualTls] }, http };
    const delays: number[] = [];
    try {
      for (let edit = 0; edit < EDITS; edit += 1) {
        const isOpen = edit % 2 === 0;
        await cluster.apply(networkPolicy("edited", isOpen ? [open] : []));
        const written = performance.now();
        const hasEffect = () =>
          load.outcomes.every((each) => {
            const last = each.filter(({ sent }) => sent > written).slice(-REQUESTS_BEFORE);
            return last.length === REQUESTS_BEFORE && last.every((one) => isThrough(one) === isOpen);
          });
        await pollUntil(hasEffect, "the effect of the edit");
        const late = load.outcomes.flat().filter((one) => one.sent > written && isThrough(one) !== isOpen);
        delays.push(Math.max(0, ...late.map(({ sent }) => sent - written)));
      }
    } finally {
      await load.stop();
    }
    console.log(
      `the last request by the former policy, after the edit was written: ${delays.map(Math.round).join(", ")} ms`,
    );
    expect(Math.max(...delays)).toBeLessThan(EFFECT_MILLISECONDS);
  });

  for (const program of [identity.nodeAgent, identity.sidecar]) {
    test(`${program} is killed under load: no denied request gets through, allowed ones soon do again`, async () => {
      const { host } = site().cluster.node;
      const seen = await underLoad(site(), async () => {
        const kills: Kill[] = [];
        for (let kill = 0; kill < KILLS; kill += 1) {
          kills.push(await killProcess(host, program));
          await Bun.sleep(RECOVERY_MILLISECONDS);
        }
        return kills;
      });
      console.log(`${program} killed ${KILLS} times: ${JSON.stringify(seen)}`);
      expect(seen.deniedThrough).toBe(0);
      expect(seen.recoveryMilliseconds).toBeLessThan(RECOVERY_MILLISECONDS);
    });
  }
}

interface Seen {
  readonly requests: number;
  readonly allowed: number;
  /** Allowed by policy, and not through. */
  readonly allowedDenied: number;
  readonly deniedThrough: number;
  /** The longest time after a kill that an allowed request was sent and did not get through. */
  readonly recoveryMilliseconds: number;
}

async function underLoad({ targetOf }: AlpSite, disturb: () => Promise<readonly Kill[]>): Promise<Seen> {
  const streams = (["kept", "new"] as const).flatMap((connections) =>
    LOAD.map((row): Stream & Pick<Row, "outcome"> => ({
      target: targetOf(row.client, row.identity),
      question: row,
      connections,
      outcome: row.outcome,
    })),
  );
  const load = startLoad(streams);
  let kills: readonly Kill[];
  try {
    await pollUntil(() => load.outcomes.every(({ length }) => length > REQUESTS_BEFORE), "the load");
    kills = await disturb();
  } finally {
    await load.stop();
  }
  const of = (outcome: Row["outcome"]) => load.outcomes.filter((_, index) => streams[index]?.outcome === outcome);
  const allowed = of("through").flat();
  const failed = allowed.filter((each) => !isThrough(each));
  return {
    requests: load.outcomes.flat().length,
    allowed: allowed.length,
    allowedDenied: failed.length,
    deniedThrough: of("denied").flat().filter(isThrough).length,
    recoveryMilliseconds: Math.round(Math.max(0, ...failed.map((each) => timeAfterKill(each, kills)))),
  };
}

/**
 * The kubelet starts a container at once that has ended for the first time, and later ones after a pause of its own: that
 * pause does not count.
 */
function timeAfterKill({ sent, answered }: Outcome, kills: readonly Kill[]): number {
  // It may have been on its way.
  const index = kills.findLastIndex(({ killed }) => killed <= answered);
  const kill = kills[index];
  if (kill === undefined) return Number.POSITIVE_INFINITY;
  return sent - (index === 0 ? kill.killed : kill.started);
}
