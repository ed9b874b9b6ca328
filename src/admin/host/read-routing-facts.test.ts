import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identity } from "../../identity.ts";
import { type FileLock, tryLockFile, unlockFile } from "../../linux/flock.ts";
import { agentState, readRoutingFacts } from "./read-routing-facts.ts";

let directory = "";
let held: FileLock | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "routing-facts-"));
});
afterEach(() => {
  if (held !== undefined) unlockFile(held);
  held = undefined;
  rmSync(directory, { recursive: true });
});

describe("agentState()", () => {
  const environment = () => ({ [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory });
  const state = () => agentState(environment());

  test("an agent that holds its lock runs, before it serves calls too, and node status says the same", async () => {
    held = tryLockFile(`${directory}/agent/lock`);

    expect(state()).toBe("running");
    expect((await readRoutingFacts(environment(), true)).isAgentRunning).toBe(true);
  });

  test("it is stopped if nobody holds its lock, and not used if there is none", () => {
    expect(state()).toBe("not used");
    const lock = tryLockFile(`${directory}/agent/lock`);
    if (lock !== undefined) unlockFile(lock);

    expect(state()).toBe("stopped");
  });
});
