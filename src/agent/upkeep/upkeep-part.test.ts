import { describe, expect, test } from "bun:test";
import { PluginError } from "../../errors.ts";
import { repeatUpkeep } from "./upkeep-part.ts";

const TAKEN = new PluginError("resource-exists", "another machine has registered it", { details: "use another name" });

/** What is logged and waited for; `outcomes`: of each pass, "" for success. */
async function played(outcomes: readonly (PluginError | "")[]) {
  const stop = new AbortController();
  const [logged, waits]: [string[], number[]] = [[], []];
  let passes = 0;
  await repeatUpkeep(
    async () => {
      const outcome = outcomes[passes++] ?? "";
      if (outcome !== "") throw outcome;
    },
    {
      log: (message, level) => void logged.push(`${level} ${message}`),
      wait: async (milliseconds) => {
        if (waits.push(milliseconds) === outcomes.length) stop.abort();
      },
      random: () => 0.5,
      signal: stop.signal,
    },
  );
  return { logged, waits };
}

describe("repeatUpkeep()", () => {
  test("waits for minutes after a pass, and tries again soon after a failure, which is logged once until it is gone", async () => {
    const { logged, waits } = await played(["", "", "", TAKEN, TAKEN, "", "", TAKEN]);

    // After a failure, as at the start, each agent chooses its own moment in the period.
    expect(waits).toEqual([150_000, 300_000, 300_000, 22_500, 22_500, 150_000, 300_000, 22_500]);
    const message = "ERROR another machine has registered it (use another name)";
    expect(logged).toEqual([message, message]);
  });

  test("logs nothing when the agent is told to end", async () => {
    const stop = new AbortController();
    const logged: string[] = [];
    const pass = async () => {
      stop.abort();
      throw TAKEN;
    };
    await repeatUpkeep(pass, {
      log: (message) => void logged.push(message),
      wait: async () => {},
      random: Math.random,
      signal: stop.signal,
    });

    expect(logged).toEqual([]);
  });
});
