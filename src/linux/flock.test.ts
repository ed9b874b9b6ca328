import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PluginError } from "../errors.ts";
import { lockFile, tryLockFile, unlockFile } from "./flock.ts";

const folder = mkdtempSync(join(tmpdir(), "vt-flock-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("tryLockFile()", () => {
  test("gives the lock to one holder at a time, and creates its folder", () => {
    const path = join(folder, "below", "lock");
    const first = tryLockFile(path);
    if (first === undefined) throw new Error("expected the lock");
    expect(tryLockFile(path)).toBeUndefined();
    unlockFile(first);
    const second = tryLockFile(path);
    if (second === undefined) throw new Error("expected the lock");
    unlockFile(second);
  });
});

describe("lockFile()", () => {
  test("waits until the holder releases the lock", async () => {
    const path = join(folder, "wait");
    const held = tryLockFile(path);
    if (held === undefined) throw new Error("expected the lock");
    const waiting = lockFile(path, { limitMilliseconds: 10_000 });
    setTimeout(() => unlockFile(held), 5);
    unlockFile(await waiting);
  });

  test("stops at the limit, and at once when aborted", async () => {
    const path = join(folder, "limit");
    const held = tryLockFile(path);
    if (held === undefined) throw new Error("expected the lock");
    const late = await lockFile(path, { limitMilliseconds: 5 }).catch((error: unknown) => error);
    expect(late instanceof PluginError && late.kind).toBe("try-again-later");
    const signal = AbortSignal.abort(new Error("stop"));
    expect(lockFile(path, { limitMilliseconds: 10_000, signal })).rejects.toThrow("stop");
    unlockFile(held);
  });

  test("is released by the kernel when the holder ends", async () => {
    const path = join(folder, "dead");
    const holder = Bun.spawn(["flock", "--no-fork", path, "sh", "-c", "echo held; exec sleep 60"], { stdout: "pipe" });
    await holder.stdout.getReader().read();
    expect(tryLockFile(path)).toBeUndefined();
    holder.kill("SIGKILL");
    await holder.exited;
    const lock = tryLockFile(path);
    expect(lock).toBeDefined();
    if (lock !== undefined) unlockFile(lock);
  });
});
