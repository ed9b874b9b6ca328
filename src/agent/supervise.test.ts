import { describe, expect, test } from "bun:test";
import { type AgentPart, nextPause, StartRefused, type Supervision, superviseParts } from "./supervise.ts";

/** Time passes only in pauses; every pause and report is recorded. */
function superviseIn(stop: AbortController) {
  const pauses: number[] = [];
  const reports: string[] = [];
  let now = 0;
  const supervision: Supervision = {
    signal: stop.signal,
    report: (message) => reports.push(message),
    elapsed: () => now,
    async wait(milliseconds) {
      pauses.push(milliseconds);
      now += milliseconds;
    },
  };
  const pass = (milliseconds: number) => {
    now += milliseconds;
  };
  return { supervision, pauses, reports, pass };
}

/** Fails the given number of times, then stops the agent. */
function failing(times: number, stop: AbortController, onRun = () => {}): AgentPart {
  let runs = 0;
  return {
    name: "the weak part",
    async run() {
      runs += 1;
      onRun();
      if (runs > times) return stop.abort();
      throw new Error(`failure ${runs}`);
    },
  };
}

function untilStopped(signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  signal.addEventListener("abort", () => resolve());
  return promise;
}

describe("superviseParts()", () => {
  test("restarts a part that failed, after a growing pause, and reports it each time", async () => {
    const stop = new AbortController();
    const { supervision, pauses, reports } = superviseIn(stop);
    await superviseParts([failing(3, stop)], supervision);

    expect(pauses).toEqual([100, 200, 400]);
    expect(reports[0]).toBe("the weak part failed (failure 1): starting it again in 100 ms");
    expect(reports).toHaveLength(3);
  });

  test("starts with the short pause again if the part ran for a minute", async () => {
    const stop = new AbortController();
    const { supervision, pauses, pass } = superviseIn(stop);
    let runs = 0;
    const part = failing(4, stop, () => {
      runs += 1;
      if (runs === 3) pass(60_000);
    });
    await superviseParts([part], supervision);

    expect(pauses).toEqual([100, 200, 100, 200]);
  });

  test("restarts a part that ended without being stopped", async () => {
    const stop = new AbortController();
    const { supervision, reports } = superviseIn(stop);
    let runs = 0;
    const run = async () => {
      runs += 1;
      if (runs === 2) stop.abort();
    };
    await superviseParts([{ name: "the short part", run }], supervision);

    expect([runs, reports]).toEqual([2, ["the short part ended: starting it again in 100 ms"]]);
  });

  test("does not affect the other parts if one fails", async () => {
    const stop = new AbortController();
    const { supervision } = superviseIn(stop);
    let runs = 0;
    const steady: AgentPart = {
      name: "the steady part",
      async run(signal) {
        runs += 1;
        await untilStopped(signal);
      },
    };
    await superviseParts([steady, failing(3, stop)], supervision);

    expect(runs).toBe(1);
  });

  test("stops every part, and waits until each has ended", async () => {
    const stop = new AbortController();
    const { supervision, reports } = superviseIn(stop);
    const ended: string[] = [];
    const part = (name: string): AgentPart => ({
      name,
      async run(signal) {
        await untilStopped(signal);
        await Bun.sleep(0);
        ended.push(name);
      },
    });
    const all = superviseParts([part("one"), part("two")], supervision);
    stop.abort();
    await all;

    expect([ended, reports]).toEqual([["one", "two"], []]);
  });

  test("stops a part that ends last after the others have ended", async () => {
    const stop = new AbortController();
    const events: string[] = [];
    const part = (name: string, endsLast: boolean): AgentPart => ({
      name,
      endsLast,
      async run(signal) {
        await untilStopped(signal);
        events.push(`${name} stops`);
        await Bun.sleep(1);
        events.push(`${name} ends`);
      },
    });
    const supervising = superviseParts([part("policy", true), part("calls", false)], superviseIn(stop).supervision);
    stop.abort();
    await supervising;

    expect(events).toEqual(["calls stops", "calls ends", "policy stops", "policy ends"]);
  });

  test("does not report a part that fails because it was stopped", async () => {
    const stop = new AbortController();
    const { supervision, reports } = superviseIn(stop);
    const run = async (signal: AbortSignal) => {
      await untilStopped(signal);
      throw new Error("stopped");
    };
    const all = superviseParts([{ name: "the part", run }], supervision);
    stop.abort();
    await all;

    expect(reports).toEqual([]);
  });

  test("stops all parts if one refuses to start, and rejects with its refusal", async () => {
    const { supervision, pauses } = superviseIn(new AbortController());
    const refusal = new StartRefused("another one is there");
    let isStopped = false;
    const steady: AgentPart = {
      name: "the steady part",
      async run(signal) {
        await untilStopped(signal);
        isStopped = true;
      },
    };
    const refusing: AgentPart = { name: "the refusing part", run: () => Promise.reject(refusal) };

    await expect(superviseParts([steady, refusing], supervision)).rejects.toBe(refusal);
    expect([isStopped, pauses]).toEqual([true, []]);
  });
});

describe("nextPause()", () => {
  test("never exceeds ten seconds", () => {
    let pause = 0;
    for (let failures = 0; failures < 50; failures++) pause = nextPause(pause, 0);

    expect(pause).toBe(10_000);
  });
});
