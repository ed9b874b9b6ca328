/** Real processes on a real cluster of three while a member, or the disk, fails: no address twice, none lost, errors clear. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { quantileOf } from "../../bench/support/statistics.ts";
import { ERROR_TABLE } from "../../src/errors.ts";
import { DYING_WITH_PARENT, hasEtcd } from "../support/etcd.ts";
import type { CallFailure, Watch } from "../support/ipam-workers.ts";
import { canMakeNetns, NetnsArea } from "../support/netns.ts";
import { proofSize } from "../support/proof-size.ts";
import { makeSwitchedNetwork, type SwitchedNetwork } from "../support/switched-network.ts";
import type { Trial, TrialReport } from "./etcd-trouble.process.ts";
import type { TroubleName } from "./etcd-trouble.ts";

const SIZE = proofSize({
  everyDay: { workers: 6, rounds: { before: 2, during: 2, after: 2 } },
  soak: { workers: 20, rounds: { before: 10, during: 10, after: 10 } },
});
const LIMIT = proofSize({ everyDay: 110_000, soak: 3_600_000 });
const MEMBERS = 3;
const missing = [hasEtcd ? [] : "no etcd", canMakeNetns ? [] : "no namespaces"].flat();

describe.skipIf(missing.length > 0)(
  `IPAM on etcd in trouble${missing.length > 0 ? ` (skipped: ${missing.join(", ")})` : ""}`,
  () => {
    const area = new NetnsArea("trouble");
    let network: SwitchedNetwork;
    beforeAll(() => {
      area.sweep();
      network = makeSwitchedNetwork(area, MEMBERS);
    });
    afterAll(() => area.sweep());

    const runTrial = async (trouble: TroubleName, servedBy: Trial["servedBy"]): Promise<TrialReport> => {
      const places = network.hosts.map(({ address, netns }) => ({
        address,
        enter: ["nsenter", `--net=${netns.path}`, "--"],
      }));
      const trial: Trial = { trouble, places, servedBy, ...SIZE };
      const file = join(import.meta.dir, "etcd-trouble.process.ts");
      const enter = ["nsenter", `--net=${network.middle.path}`, "--"];
      const command = [...DYING_WITH_PARENT, ...enter, process.execPath, file, JSON.stringify(trial)];
      const child = Bun.spawn(command, { stdin: "ignore", stdout: "pipe", stderr: "inherit" });
      const [text, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
      if (code !== 0) throw new Error(`the trial ended with exit code ${code}: ${text}`);
      const report: TrialReport = JSON.parse(text);
      say(`${trouble}, served by ${servedBy}`, report);
      return report;
    };

    /** What must hold whatever happened. */
    const expectNothingLost = (report: TrialReport) => {
      expect(report.before.failures).toEqual([]);
      expect(report.after.failures).toEqual([]);
      expect(report.doubles).toEqual([]);
      expect(report.problems).toEqual([]);
      expect(report.left).toEqual([]);
      for (const [before, after] of report.residents) {
        expect(before).toBeDefined();
        expect(after).toBe(before ?? "");
      }
    };

    const leaderTroubles = ["the leader is killed", "the leader is frozen", "the leader is cut off"] as const;
    const served = ["processes", "an agent"] as const;
    const rows = leaderTroubles.flatMap((trouble) => served.map((servedBy) => [trouble, servedBy] as const));
    // Processes wait longest for a leader that does not reply.
    const quick = rows.filter(([trouble, by]) => by === "an agent" || trouble === "the leader is killed");
    test.each(proofSize({ everyDay: quick, soak: rows }))(
      "holds no address twice, loses none and never fails when %s, served by %s",
      async (trouble, servedBy) => {
        const report = await runTrial(trouble, servedBy);

        expectNothingLost(report);
        expect(report.during.failures).toEqual([]);
      },
      LIMIT,
    );

    test.each(served)(
      "holds no address twice and loses none when the quota is used up, and says what to do about it, served by %s",
      async (servedBy) => {
        const report = await runTrial("the quota is used up", servedBy);

        expectNothingLost(report);
        expect(report.during.failures.length).toBeGreaterThan(0);
        for (const failure of report.during.failures) expectClear(failure);
      },
      LIMIT,
    );
  },
);

function expectClear({ code, message, details }: CallFailure): void {
  expect(code).toBe(ERROR_TABLE["datastore-unavailable"].code);
  expect(message).toMatch(/etcd at "http:\/\/10\.250\.0\.\d:\d+" failed at stage "request"/);
  expect(details).toContain("etcdctl alarm disarm");
}

/** Figures for the reader; timings decide nothing. */
function say(trial: string, { before, during, after }: TrialReport): void {
  const told = ({ calls, failures, durations }: Watch) => {
    const [p50 = 0, p99 = 0, most = 0] = [0.5, 0.99, 1].map((share) => quantileOf(durations, share));
    return `${calls} calls, ${failures.length} failed, ms p50 ${p50.toFixed(0)} p99 ${p99.toFixed(0)} max ${most.toFixed(0)}`;
  };
  console.log(`${trial}: before ${told(before)}; during ${told(during)}; after ${told(after)}`);
}
