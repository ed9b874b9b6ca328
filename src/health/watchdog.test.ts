import { describe, expect, test } from "bun:test";
import { join } from "node:path";

const MODULE = JSON.stringify(join(import.meta.dir, "watchdog.ts"));

/** A process of its own that runs the lines after its start. */
async function watched(lines: string, { under = [] as readonly string[], limit = 400 } = {}) {
  const script = `
    import { watchOver } from ${MODULE};
    let reply = { status: 200, text: "live" };
    const begun = performance.now();
    const end = watchOver({ liveness: () => reply, log: console.log, checkMilliseconds: 20, limitMilliseconds: ${limit} });
    ${lines}`;
  const child = Bun.spawn([...under, process.execPath, "-e", script], { stdout: "pipe" });
  const printed = await new Response(child.stdout).text();
  await child.exited;
  return { printed, code: child.exitCode, signal: child.signalCode };
}

describe("watchOver()", () => {
  test("has the kernel end a process that is blocked", async () => {
    expect(await watched("for (;;);")).toMatchObject({ signal: "SIGALRM" });
  });

  test("does so if the process that started it ignores the signal", async () => {
    const under = ["sh", "-c", `trap "" ALRM; exec "$@"`, "sh"];
    expect(await watched("for (;;);", { under })).toMatchObject({ signal: "SIGALRM" });
  });

  test("ends a process that does not live for the limit, and says why, once", async () => {
    const { printed, signal } = await watched(`reply = { status: 503, text: "hangs" };`);

    expect(printed).toBe("Does not live, and will be ended by SIGALRM after 0.4 s: hangs\n");
    expect(signal).toBe("SIGALRM");
  });

  test("leaves a process alone that lives for longer than the limit, or lives again", async () => {
    const limit = 3_000;
    const { printed, code } = await watched(
      `reply = { status: 503, text: "hangs" };
       setTimeout(() => (reply = { status: 200, text: "live" }), 200);
       setInterval(() => performance.now() - begun > ${1.5 * limit} && process.exit(7), 20);`,
      { limit },
    );

    expect([printed.split("\n").length, code]).toEqual([2, 7]);
  });

  test("watches no more when it is ended", async () => {
    const { code } = await watched("end(); Bun.sleepSync(800); process.exitCode = 7;");

    expect(code).toBe(7);
  });
});
