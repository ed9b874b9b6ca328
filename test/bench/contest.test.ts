import { describe, expect, test } from "bun:test";
import { commandContender, runCommand } from "../../bench/support/command.ts";
import { type Contender, runContest } from "../../bench/support/contest.ts";
import { processorMilliseconds } from "../../bench/support/processor-clock.ts";
import { tableOf } from "../../bench/support/report.ts";
import { summarize } from "../../bench/support/statistics.ts";
import { pollUntil } from "../support/poll.ts";

const QUIET = { baseline: "a", rounds: 3, warmUpRounds: 0 };

function noting(name: string, notes: string[]): Contender {
  return {
    name,
    before: ({ round }) => void notes.push(`before ${name}${round}`),
    run: () => void notes.push(name),
    after: ({ round }) => void notes.push(`after ${name}${round}`),
  };
}

describe("summarize()", () => {
  test("gives median, 95th percentile, mean and least", () => {
    const values = Array.from({ length: 101 }, (_, index) => 100 - index);

    expect(summarize(values)).toEqual({ median: 50, p95: 95, mean: 50, least: 0 });
  });

  test("takes the middle between two values", () => {
    expect(summarize([1, 2]).median).toBe(1.5);
  });
});

describe("runContest()", () => {
  test("lets every contender begin a round in turn, setting up and clearing away around each", async () => {
    const notes: string[] = [];
    await runContest({ title: "t", contenders: [noting("a", notes), noting("b", notes)], ...QUIET, rounds: 2 });

    expect(notes).toEqual(
      ["before a0,a,after a0", "before b0,b,after b0", "before b1,b,after b1", "before a1,a,after a1"].flatMap((turn) =>
        turn.split(","),
      ),
    );
  });

  test("counts no warm-up round", async () => {
    const notes: string[] = [];
    const result = await runContest({ title: "t", contenders: [noting("a", notes)], ...QUIET, warmUpRounds: 4 });

    expect(notes.filter((note) => note === "a")).toHaveLength(7);
    expect(result.standings[0]?.wallMilliseconds).toHaveLength(3);
  });

  test("runs as many operations at once as asked for, and adds up what they used", async () => {
    let running = 0;
    let most = 0;
    const contender: Contender = {
      name: "a",
      async run() {
        running += 1;
        most = Math.max(most, running);
        await Promise.resolve();
        running -= 1;
        return { cpuMilliseconds: 2 };
      },
    };
    const result = await runContest({ title: "t", contenders: [contender], ...QUIET, concurrency: 5 });

    expect(most).toBe(5);
    expect(result.standings[0]?.cpu?.median).toBe(10);
  });

  test("adds what a turn cost elsewhere once, metered around its operations alone", async () => {
    const notes: string[] = [];
    const metered: Contender = {
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
    const contest = { title: "t", contenders: [metered], ...QUIET, rounds: 1, concurrency: 5, daemonTurns: 2 };
    const result = await runContest(contest);

    expect(result.standings[0]?.cpu?.median).toBe(110);
    // The daemon's first calls are not measured, and made but once.
    const first = ["before a-1", "after a-1", "before a-2", "after a-2"];
    expect(notes).toEqual([...first, "before a0", "begins", "ends", "after a0"]);
    await runContest(contest);
    expect(notes.slice(8)).toEqual(["before a0", "begins", "ends", "after a0"]);
  });

  test("clears away when an operation fails, and fails itself", async () => {
    const notes: string[] = [];
    const failing: Contender = {
      ...noting("a", notes),
      run: () => {
        throw new Error("broken");
      },
    };

    expect(runContest({ title: "t", contenders: [failing], ...QUIET })).rejects.toThrow("broken");
    expect(notes).toEqual(["before a0", "after a0"]);
  });

  test("refuses a baseline that does not take part", () => {
    expect(runContest({ title: "t", contenders: [], ...QUIET })).rejects.toThrow("no contender");
  });
});

describe("processorMilliseconds()", () => {
  test("tells what a running process has used, as its end confirms", async () => {
    const busy = Bun.spawn(["sh", "-c", "while :; do :; done"]);
    await pollUntil(() => processorMilliseconds(busy.pid) > 50, "a busy process to use the processor");
    const soFar = processorMilliseconds(busy.pid);
    busy.kill("SIGKILL");
    await busy.exited;
    const inAll = Number(busy.resourceUsage()?.cpuTime.total) / 1000;

    expect(soFar).toBeWithin(50, inAll + 1);
  });

  test("refuses a process that is not there", async () => {
    const gone = Bun.spawn(["true"]);
    await gone.exited;

    expect(() => processorMilliseconds(gone.pid)).toThrow("no such process");
  });
});

describe("commandContender()", () => {
  test("tells CPU time, and a peak memory that is the command's own", async () => {
    const contenders = [commandContender("a", { command: ["/bin/true"] })];
    const [standing] = (await runContest({ title: "t", contenders, ...QUIET })).standings;

    expect(standing?.cpu?.median).toBeGreaterThan(0);
    if (Bun.which("perl") === null) return;
    const { residentBytes, ownBytes } = standing?.peakMemory ?? {};
    expect(residentBytes).toBeWithin(100_000, 8_000_000);
    if (ownBytes !== undefined) expect(ownBytes).toBeWithin(10_000, 8_000_000);
  });

  test("takes no command that fails for a contender", () => {
    expect(runCommand({ command: ["/bin/false"] })).rejects.toThrow("exit code 1");
  });
});

describe("tableOf()", () => {
  test("tells each contender's ratio to the baseline", () => {
    const standing = {
      cpu: undefined,
      peakMemory: { residentBytes: 12_000_000, ownBytes: 3_000_000 },
      wallMilliseconds: [],
    };
    const wall = { median: 4, p95: 6, mean: 4, least: 3 };
    const standings = [
      { ...standing, name: "a", wall, ratio: 1, difference: 0 },
      { ...standing, name: "b", wall: { ...wall, median: 6 }, ratio: 1.5, difference: 2 },
    ];
    const table = tableOf({ title: "t", baseline: "a", rounds: 3, concurrency: 1, standings });

    expect(table).toContain(
      "| b         |      6.00 |   6.00 |     3.00 | 1.50 x |         +2.00 |        |           3.0 (12.0) |",
    );
  });
});
