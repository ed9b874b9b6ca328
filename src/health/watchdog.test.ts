import { describe, expect, test } from "bun:test";
import { join } from "node:path";

const MODULE = JSON.stringify(join(import.meta.dir, "watchdog.ts"));

/** A process of its own that runs the lines after its start. */
async function watched(lines: string, { under = [] as readonly string[], limit = 400, long = 60_000 } = {}) {
  const script = `
    import { watchOver } from ${MODULE};
    let reply = { status: 200, text: "live" };
    const begun = performance.now();
    const watch = watchOver({ warn: console.log, checkMilliseconds: 20, limitMilliseconds: ${limit}, longMilliseconds: ${long} });
    watch.ask(() => reply);
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

  test("ends a process that is not live for the limit, and says why, once", async () => {
    const { printed, signal } = await watched(`reply = { status: 503, text: "hangs" };`);

    expect(printed).toBe("Not live; SIGALRM ends this process within 0.4 s unless it recovers: hangs\n");
    expect(signal).toBe("SIGALRM");
  });

  test("ends the first process of a PID namespace too if it is not live, and says that it cannot if it is blocked", async () => {
    const under = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"];
    const { printed, code } = await watched(`reply = { status: 503, text: "hangs" };`, { under });

    expect(printed.split("\n")).toEqual([
      "The kernel will not end this process if it is blocked: it is the first of its PID namespace",
      "Not live; SIGALRM ends this process within 0.4 s unless it recovers: hangs",
      "",
    ]);
    expect(code).toBe(142);
  });

  test("says once if the kernel refuses the timer", async () => {
    const { printed } = await watched("setTimeout(() => process.exit(), 200);", { limit: -1_000 });

    expect(printed).toBe("The kernel will not end this process if it is blocked: setitimer failed, error 22\n");
  });

  test("leaves a process alone that is not asked any more", async () => {
    const { printed, code } = await watched(
      `reply = { status: 503, text: "hangs" }; watch.ask(undefined); setTimeout(() => process.exit(7), 800);`,
    );

    expect([printed, code]).toEqual(["", 7]);
  });

  test("leaves a process alone that is live for longer than the limit, or is live again", async () => {
    const limit = 3_000;
    const { printed, code } = await watched(
      `reply = { status: 503, text: "hangs" };
       setTimeout(() => (reply = { status: 200, text: "live" }), 200);
       setInterval(() => performance.now() - begun > ${1.5 * limit} && process.exit(7), 20);`,
      { limit },
    );

    expect([printed.split("\n").length, code]).toEqual([2, 7]);
  });

  test("leaves a process alone that the kernel keeps longer than the limit, if it has said so, and ends it later as before", async () => {
    const wait = "const end = performance.now() + 1_200; while (performance.now() < end); console.log('done');";
    const patient = await watched(`watch.patiently(() => { ${wait} }); setTimeout(() => process.exit(7), 100);`);
    expect([patient.printed, patient.code]).toEqual(["done\n", 7]);

    const blocked = await watched(`watch.patiently(() => { ${wait} }); for (;;);`);
    expect([blocked.printed, blocked.signal]).toEqual(["done\n", "SIGALRM"]);
  });

  test("ends a process that is not live, whatever it leaves to the kernel meanwhile", async () => {
    const { signal } = await watched(
      `reply = { status: 503, text: "hangs" }; setInterval(() => watch.patiently(() => {}), 10);`,
    );
    expect(signal).toBe("SIGALRM");
  });

  test("ends a process that the kernel keeps for longer than it may ever take", async () => {
    const { signal } = await watched("watch.patiently(() => { for (;;); });", { long: 800 });
    expect(signal).toBe("SIGALRM");
  });

  test("watches no more when it is ended", async () => {
    const { code } = await watched("watch.end(); Bun.sleepSync(800); process.exitCode = 7;");

    expect(code).toBe(7);
  });
});
