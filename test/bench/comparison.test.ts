import { describe, expect, test } from "bun:test";
import { commandCandidate, runCommand } from "../../bench/support/command-candidate.ts";
import { type Candidate, runComparison } from "../../bench/support/comparison.ts";
import { processorMilliseconds } from "../../bench/support/processor-clock.ts";
import { tableOf } from "../../bench/support/report.ts";
import { summarize } from "../../bench/support/statistics.ts";
import { pollUntil } from "../support/poll.ts";

const QUIET = { baseline: "a", rounds: 3, warmUpRounds: 0 };

function noting(name: string, notes: string[]): Candidate {
  return {
    name,
    before: ({ round }) => void notes.push(`before ${name}${round}`),
    run: () => void notes.push(name),
    after: ({ round }) => void notes.push(`after ${name}${round}`),
  };
}

describe("summarize()", () => {
  test("returns median, 95th percentile, mean and minimum", () => {
    const values = Array.from({ length: 101 }, (_, index) => 100 - index);

    expect(summarize(values)).toEqual({ median: 50, p95: 95, mean: 50, minimum: 0 });
  });

  test("interpolates between two values", () => {
    expect(summarize([1, 2]).median).toBe(1.5);
  });
});

describe("runComparison()", () => {
  test("starts each round with another candidate, with setup and cleanup around each turn", async () => {
    const notes: string[] = [];
    await runComparison({ title: "t", candidates: [noting("a", notes), noting("b", notes)], ...QUIET, rounds: 2 });

    expect(notes).toEqual(
      ["before a0,a,after a0", "before b0,b,after b0", "before b1,b,after b1", "before a1,a,after a1"].flatMap((turn) =>
        turn.split(","),
      ),
    );
  });

  test("does not count warm-up rounds", async () => {
    const notes: string[] = [];
    const result = await runComparison({ title: "t", candidates: [noting("a", notes)], ...QUIET, warmUpRounds: 4 });

    expect(notes.filter((note) => note === "a")).toHaveLength(7);
    expect(result.candidates[0]?.wallMilliseconds).toHaveLength(3);
  });

  test("runs the given number of operations concurrently, and adds up their CPU time", async () => {
    let running = 0;
    let most = 0;
    const candidate: Candidate = {
      name: "a",
      async run() {
        running += 1;
        most = Math.max(most, running);
        await Promise.resolve();
        running -= 1;
        return { cpuMilliseconds: 2 };
      },
    };
    const result = await runComparison({ title: "t", candidates: [candidate], ...QUIET, concurrency: 5 });

    expect(most).toBe(5);
    expect(result.candidates[0]?.cpu?.median).toBe(10);
  });

  test("adds the cost of a daemon once per turn, measured around its operations only", async () => {
    const notes: string[] = [];
    const metered: Candidate = {
      ...noting("a", notes),
      run: () => ({ cpuMilliseconds: 2 }),
      async meter() {
        notes.push("begins");
        return async () => {
          notes.push("ends");
          return { cpuMilliseconds: 100 };
        };
      },
    };
    const comparison = { title: "t", candidates: [metered], ...QUIET, rounds: 1, concurrency: 5, daemonTurns: 2 };
    const result = await runComparison(comparison);

    expect(result.candidates[0]?.cpu?.median).toBe(110);
    // The daemon's first calls are not measured, and made only once.
    const first = ["before a-1", "after a-1", "before a-2", "after a-2"];
    expect(notes).toEqual([...first, "before a0", "begins", "ends", "after a0"]);
    await runComparison(comparison);
    expect(notes.slice(8)).toEqual(["before a0", "begins", "ends", "after a0"]);
  });

  test("cleans up if an operation fails, and fails itself", async () => {
    const notes: string[] = [];
    const failing: Candidate = {
      ...noting("a", notes),
      run: () => {
        throw new Error("broken");
      },
    };

    expect(runComparison({ title: "t", candidates: [failing], ...QUIET })).rejects.toThrow("broken");
    expect(notes).toEqual(["before a0", "after a0"]);
  });

  test("refuses a baseline that is not a candidate", () => {
    expect(runComparison({ title: "t", candidates: [], ...QUIET })).rejects.toThrow("no candidate");
  });
});

describe("processorMilliseconds()", () => {
  test("returns the CPU time of a running process, as the kernel reports it at its end", async () => {
    const busy = Bun.spawn(["sh", "-c", "while :; do :; done"]);
    await pollUntil(() => processorMilliseconds(busy.pid) > 50, "a busy process to use the processor");
    const soFar = processorMilliseconds(busy.pid);
    busy.kill("SIGKILL");
    await busy.exited;
    const inAll = Number(busy.resourceUsage()?.cpuTime.total) / 1000;

    expect(soFar).toBeWithin(50, inAll + 1);
  });

  test("refuses a process that does not exist", async () => {
    const gone = Bun.spawn(["true"]);
    await gone.exited;

    expect(() => processorMilliseconds(gone.pid)).toThrow("no such process");
  });
});

describe("commandCandidate()", () => {
  test("measures the CPU time and the peak memory of the command alone", async () => {
    const candidates = [commandCandidate("a", { command: ["/bin/true"] })];
    const [result] = (await runComparison({ title: "t", candidates, ...QUIET })).candidates;

    expect(result?.cpu?.median).toBeGreaterThan(0);
    if (Bun.which("perl") === null) return;
    const { residentBytes, ownBytes } = result?.peakMemory ?? {};
    expect(residentBytes).toBeWithin(100_000, 8_000_000);
    if (ownBytes !== undefined) expect(ownBytes).toBeWithin(10_000, 8_000_000);
  });

  test("refuses a command that fails", () => {
    expect(runCommand({ command: ["/bin/false"] })).rejects.toThrow("exit code 1");
  });
});

describe("tableOf()", () => {
  test("shows each candidate's ratio to the baseline", () => {
    const result = {
      cpu: undefined,
      peakMemory: { residentBytes: 12_000_000, ownBytes: 3_000_000 },
      wallMilliseconds: [],
    };
    const wall = { median: 4, p95: 6, mean: 4, minimum: 3 };
    const candidates = [
      { ...result, name: "a", wall, ratio: 1, difference: 0 },
      { ...result, name: "b", wall: { ...wall, median: 6 }, ratio: 1.5, difference: 2 },
    ];
    const table = tableOf({ title: "t", baseline: "a", rounds: 3, concurrency: 1, candidates });

    expect(table).toContain(
      "| b         |      6.00 |   6.00 |   3.00 | 1.50 x |         +2.00 |        |           3.0 (12.0) |",
    );
  });
});
