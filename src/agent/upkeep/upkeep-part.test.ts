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
      signal: stop.signal,
    },
  );
  return { logged, waits };
}

describe("repeatUpkeep()", () => {
  test("waits for minutes after a pass, and tries again soon after a failure, which is logged once until it is gone", async () => {
    const { logged, waits } = await played(["", TAKEN, TAKEN, "", TAKEN]);

    expect(waits).toEqual([300_000, 30_000, 30_000, 300_000, 30_000]);
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
      signal: stop.signal,
    });

    expect(logged).toEqual([]);
  });
});
