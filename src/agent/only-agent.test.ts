import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { identity } from "../identity.ts";
import { type FileLock, tryLockFile, unlockFile } from "../linux/flock.ts";
import { becomeOnlyAgent } from "./only-agent.ts";

const LIMITS = { stopMilliseconds: 20, endMilliseconds: 100 };
let directory = "";
let held: FileLock | undefined;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "only-agent-"));
});
afterEach(() => {
  if (held !== undefined) unlockFile(held);
  held = undefined;
  rmSync(directory, { recursive: true });
});

const become = (signal = new AbortController().signal) =>
  becomeOnlyAgent(
    { environment: { [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory }, isRoot: true },
    signal,
    LIMITS,
  );

describe("becomeOnlyAgent()", () => {
  test("takes the lock, which nobody else gets from then on", async () => {
    expect(await become()).toBeUndefined();
    expect(await become()).toContain("holds the lock");
  });

  test("waits for a holder that does not serve, and names its process if it does not end", async () => {
    held = tryLockFile(`${directory}/agent/lock`);
    const reason = `process ${process.pid} holds the lock "${directory}/agent/lock" but serves no calls, and has not ended within 0.1 s: kill it`;

    expect(await become()).toBe(reason);
  });

  test("ends with the reason of the signal while it waits", async () => {
    held = tryLockFile(`${directory}/agent/lock`);
    const stop = new AbortController();
    const waiting = become(stop.signal);
    stop.abort("stopped");

    await expect(waiting).rejects.toBe("stopped");
  });
});
