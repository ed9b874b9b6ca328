import { describe, expect, test } from "bun:test";
import { upkeepPart } from "./upkeep-part.ts";

interface Run {
  readonly commands: readonly string[];
  readonly logged: readonly string[];
  readonly waits: readonly number[];
}

/** Runs the part until it has waited as often as there are rounds; `outputs` are those of the commands, in order. */
async function runRounds(
  rounds: number,
  outputs: readonly (readonly [exitCode: number, output: string])[],
): Promise<Run> {
  const stop = new AbortController();
  const [commands, logged, waits]: [string[], string[], number[]] = [[], [], []];
  await upkeepPart({
    async run(command) {
      const [exitCode, output] = outputs[commands.length] ?? [0, ""];
      commands.push(command.slice(0, 2).join(" "));
      return { exitCode, output };
    },
    log: (message, _, level = "INFO") => void logged.push(`${level} ${message}`),
    async wait(milliseconds) {
      waits.push(milliseconds);
      if (waits.length === rounds) stop.abort();
    },
  }).run(stop.signal);
  return { commands, logged, waits };
}

describe("upkeepPart()", () => {
  test("registers the node, searches for leaks and restores tables at the start and every 5 minutes, and logs changes", async () => {
    const { commands, logged, waits } = await runRounds(2, [
      [0, ""],
      [0, "released 10.0.0.1"],
      [0, "Wrote the tables"],
    ]);

    expect(commands).toEqual(["node register", "ipam gc", "node restore", "node register", "ipam gc", "node restore"]);
    expect(logged).toEqual(["INFO released 10.0.0.1", "INFO Wrote the tables"]);
    expect(waits).toEqual([300_000, 300_000]);
  });

  test("does not search for leaks if the node cannot be registered, restores tables, tries again soon, and logs the failure once", async () => {
    const { commands, logged, waits } = await runRounds(2, [
      [1, "another machine has registered it"],
      [0, ""],
      [1, "another machine has registered it"],
    ]);

    expect(commands).toEqual(["node register", "node restore", "node register", "node restore"]);
    expect(logged).toEqual(["ERROR another machine has registered it"]);
    expect(waits).toEqual([30_000, 30_000]);
  });

  test("starts no further command when the agent is told to end", async () => {
    const stop = new AbortController();
    const commands: string[] = [];
    await upkeepPart({
      async run(command) {
        commands.push(command.slice(0, 2).join(" "));
        stop.abort();
        return { exitCode: 143, output: "" };
      },
      wait: async () => {},
      log: () => {},
    }).run(stop.signal);

    expect(commands).toEqual(["node register"]);
  });
});
