import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitForFile } from "./wait-for-file.ts";

const folder = mkdtempSync(join(tmpdir(), "vt-wait-"));
afterAll(() => rmSync(folder, { recursive: true }));

describe("waitForFile()", () => {
  test("returns at once if the file exists", async () => {
    expect(await waitForFile(folder, { limitMilliseconds: 0 })).toBe("present");
  });

  test("is notified when the file appears, without polling", async () => {
    const path = join(folder, "k8s default%2Fpod eth0");
    const never = 1_000_000;
    const waiting = waitForFile(path, { limitMilliseconds: never, paceMilliseconds: never });
    setTimeout(() => writeFileSync(path, ""), 5);
    expect(await waiting).toBe("present");
  });

  test("finds the file in a folder that is created later", async () => {
    const path = join(folder, "later", "file");
    const waiting = waitForFile(path, { limitMilliseconds: 10_000 });
    mkdirSync(join(folder, "later"));
    writeFileSync(path, "");
    expect(await waiting).toBe("present");
  });

  test("times out, and an abort ends the wait", async () => {
    const path = join(folder, "never");
    expect(await waitForFile(path, { limitMilliseconds: 10 })).toBe("timed out");
    const controller = new AbortController();
    const waiting = waitForFile(path, { limitMilliseconds: 10_000, signal: controller.signal });
    controller.abort(new Error("stop"));
    expect(waiting).rejects.toThrow("stop");
  });
});
