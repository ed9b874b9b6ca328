/** Fifty processes at once, on each datastore, let live and killed at random. */
import { describe, expect, test } from "bun:test";
import { poolChange } from "../support/ipam.ts";
import { IPAM_SITES, type IpamSite, judge } from "../support/ipam-site.ts";
import { findDoubles, runStorm, type StormReport } from "../support/ipam-storm.ts";
import { proofSize } from "../support/proof-size.ts";

const PROCESSES = 50;
const ROUNDS = proofSize({ everyDay: 3, soak: 200 });
const LIMIT = 60_000 + PROCESSES * ROUNDS * 1000;

for (const { name, missing, start } of IPAM_SITES) {
  describe.skipIf(missing !== undefined)(
    `${PROCESSES} processes on ${name}${missing ? ` (skipped: ${missing})` : ""}`,
    () => {
      const weather = async (killed: number, judgement: (site: IpamSite, report: StormReport) => Promise<void>) => {
        const site = await start(poolChange("four", "10.0.0.0/24", { blockSize: 28 }));
        try {
          const report = await runStorm(site, { processes: PROCESSES, rounds: ROUNDS, killed });
          say(name, report);
          await judgement(site, report);
        } finally {
          await site.stop();
        }
      };

      test(
        "hold no address twice, lose none and never fail",
        () =>
          weather(0, async (site, { holdings, failures }) => {
            expect(failures).toEqual([]);
            expect(holdings).toHaveLength(PROCESSES * ROUNDS);
            expect(findDoubles(holdings)).toEqual([]);
            const { world, problems } = await judge(site);
            expect(problems).toEqual([]);
            expect(world.handles).toEqual([]);
          }),
        LIMIT,
      );

      test(
        "hold no address twice and lose none when killed at random",
        () =>
          weather(0.3, async (site, { holdings, failures, killed }) => {
            expect(killed).toBeGreaterThan(0);
            expect(failures).toEqual([]);
            expect(findDoubles(holdings)).toEqual([]);
            const { world, problems } = await judge(site);
            expect(problems).toEqual([]);
            expect(world.handles).toEqual([]);
          }),
        LIMIT,
      );
    },
  );
}

function say(name: string, { durations, killed, seconds }: StormReport): void {
  const sorted = [...durations].sort((left, right) => left - right);
  const at = (part: number) => (sorted[Math.floor((sorted.length - 1) * part)] ?? 0).toFixed(0);
  const rate = (durations.length / seconds).toFixed(0);
  console.log(
    `${name}: ${durations.length} calls and ${killed} killed in ${seconds.toFixed(1)} s, ${rate}/s, ms p50 ${at(0.5)} p99 ${at(0.99)} max ${at(1)}`,
  );
}
