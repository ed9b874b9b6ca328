import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitForFile } from "./wait-for-file.ts";

const folder = mkdtempSync(join(tmpdir(), "vt-wait-"));
afterAll(() => rmSync(folder, { recursive: true }));

const NEVER = 1_000_000;
const isWanted = (text: string) => text === "wanted";

describe("waitForFile()", () => {
  test("returns at once if the file has the content", async () => {
    const path = join(folder, "there");
    writeFileSync(path, "wanted");
    expect(await waitForFile(path, { limitMilliseconds: 0, isWanted })).toBe("present");
  });

  test("waits for a limit of more than 25 days", async () => {
    const waiting = waitForFile(join(folder, "never"), {
      limitMilliseconds: 2 ** 32,
      isWanted,
      signal: AbortSignal.timeout(30),
    });
    await expect(waiting).rejects.toThrow("timed out");
  });

  test("is notified when the file appears, without polling", async () => {
    const path = join(folder, "k8s default%2Fpod eth0");
    const waiting = waitForFile(path, { limitMilliseconds: NEVER, paceMilliseconds: NEVER, isWanted });
    setTimeout(() => writeFileSync(path, "wanted"), 5);
    expect(await waiting).toBe("present");
  });

  test("is notified when a file with other content is replaced, without polling", async () => {
    const path = join(folder, "replaced");
    writeFileSync(path, "of an earlier sandbox");
    expect(await waitForFile(path, { limitMilliseconds: 10, isWanted })).toBe("timed out");
    const waiting = waitForFile(path, { limitMilliseconds: NEVER, paceMilliseconds: NEVER, isWanted });
    writeFileSync(`${path}.new`, "wanted");
    setTimeout(() => renameSync(`${path}.new`, path), 5);
    expect(await waiting).toBe("present");
  });

  test("finds the file in a folder that is created later", async () => {
    const path = join(folder, "later", "file");
    const waiting = waitForFile(path, { limitMilliseconds: 10_000, isWanted });
    mkdirSync(join(folder, "later"));
    writeFileSync(path, "wanted");
    expect(await waiting).toBe("present");
  });

  test("times out, and an abort ends the wait", async () => {
    const path = join(folder, "never");
    expect(await waitForFile(path, { limitMilliseconds: 10, isWanted })).toBe("timed out");
    const controller = new AbortController();
    const waiting = waitForFile(path, { limitMilliseconds: 10_000, signal: controller.signal, isWanted });
    controller.abort(new Error("stop"));
    await expect(waiting).rejects.toThrow("stop");
  });
});
