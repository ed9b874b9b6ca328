import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const place = mkdtempSync(join(tmpdir(), "vt-sweep-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

const MODULE = join(import.meta.dir, "../support/temporary-directory.ts");
const namespace = /\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0];

/** A process that creates a directory and then ends in the given way. */
async function makeElsewhere(ending: string): Promise<void> {
  const script = `
    const { temporaryDirectory } = await import(${JSON.stringify(MODULE)});
    temporaryDirectory("etcd", ${JSON.stringify(place)});
    ${ending}`;
  await Bun.spawn([process.execPath, "-e", script], { stdout: "ignore", stderr: "ignore" }).exited;
}

describe("temporaryDirectory()", () => {
  test("immediately removes the directory of a killed process, and keeps that of a running one", async () => {
    const own = temporaryDirectory("living", place);
    await makeElsewhere(`process.kill(process.pid, "SIGKILL");`);
    expect(readdirSync(place)).toHaveLength(2);

    const next = temporaryDirectory("other", place);

    expect(
      readdirSync(place)
        .map((name) => join(place, name))
        .toSorted(),
    ).toEqual([own.path, next.path].toSorted());
    own.remove();
    next.remove();
  });

  test("leaves nothing if its process ends without removing it", async () => {
    await makeElsewhere("process.exit(1);");

    expect(readdirSync(place)).toEqual([]);
  });

  test("does not remove the directory of a process in another PID namespace", () => {
    const foreign = join(place, `vt-etcd-999999in${Number(namespace) + 1}-abc`);
    mkdirSync(foreign);
    temporaryDirectory("own", place).remove();

    expect(existsSync(foreign)).toBe(true);
    rmSync(foreign, { recursive: true });
  });
});
