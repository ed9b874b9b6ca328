/** However the process ends, its caller gets one complete output on stdout and the right exit code. */
import { afterAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pollUntil } from "../support/poll.ts";
import { ATTACHMENT_ENV, builtProgram, cniErrorOfRun, runPlugin } from "../support/run-plugin.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const SPY = [process.execPath, join(import.meta.dir, "spy.process.ts")];
const CONFIG = { cniVersion: "1.1.0", name: "net", type: "spy" };
const folder = temporaryDirectory("process-end");
afterAll(() => folder.remove());

function add(spy: string, more: Readonly<Record<string, string>> = {}) {
  return { env: { ...ATTACHMENT_ENV, CNI_COMMAND: "ADD", SPY: spy, ...more }, stdin: CONFIG };
}

describe("a fault", () => {
  test.each(["throw", "timer", "rejection"])("of kind %s ends with one JSON error 999", async (spy) => {
    expect(cniErrorOfRun(await runPlugin(SPY, add(spy))).code).toBe(999);
  });

  test("outside the handler lets the handler undo its work first", async () => {
    const undone = join(folder.path, "fault.undone");
    const run = await runPlugin(SPY, add("undoes after a fault", { SPY_UNDONE: undone }));

    expect(cniErrorOfRun(run)).toMatchObject({ code: 999, msg: "thrown in a timer" });
    expect(readFileSync(undone, "utf8")).toBe("undone");
  });
});

describe("the output", () => {
  test("of 1 MB arrives completely, even at a slow reader", async () => {
    const child = Bun.spawn([...SPY], {
      env: add("big").env,
      stdin: Buffer.from(JSON.stringify(CONFIG)),
      stdout: "pipe",
    });
    const chunks: Uint8Array[] = [];
    for await (const chunk of child.stdout) {
      chunks.push(chunk);
      await Bun.sleep(1);
    }

    expect(await child.exited).toBe(0);
    expect(JSON.parse(Buffer.concat(chunks).toString()).dns.search).toHaveLength(1024);
  });

  test("is alone on stdout if a library prints", async () => {
    const run = await runPlugin(SPY, add("prints"));

    expect(JSON.parse(run.stdout).cniVersion).toBe("1.1.0");
    expect(run.stderr.match(/a library prints/g)).toHaveLength(3);
  });

  test("is followed by the end of the process although timers and sockets are open", async () => {
    const late = Bun.sleep(20_000).then(() => "late");

    expect(await Promise.race([runPlugin(SPY, add("lingers")), late])).toMatchObject({ exitCode: 0 });
  });
});

describe("a reader that closed the pipe", () => {
  test.each(["plain", "big", "throw"])("leads to a non-zero exit code (%s)", async (spy) => {
    const script = '"$@" | exit 0; echo "$' + '{PIPESTATUS[0]}"';
    const run = await runPlugin(
      ["/bin/bash", "-c", script, "bash", "/bin/sh", "-c", 'sleep 0.1; exec "$@"', "sh", ...SPY],
      {
        ...add(spy, { PATH: "/usr/bin:/bin" }),
      },
    );

    expect(Number(run.stdout)).toBe(1);
  });
});

describe("a stdout that was closed before the start", () => {
  test("makes ADD fail, since nobody got its result", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$@" >&-', "sh", ...SPY], add("plain"));

    expect(run).toMatchObject({ exitCode: 1, stdout: "" });
    expect(run.stderr).toContain("stdout");
  });

  test("is distinguished from /dev/null, which is a valid reader", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$@" >/dev/null', "sh", ...SPY], add("plain"));

    expect(run).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });

  const versions = { env: { CNI_COMMAND: "VERSION" } };

  test("makes VERSION fail, which runs before anything is loaded", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$0" >&-', builtProgram()], versions);

    expect(run).toMatchObject({ exitCode: 1, stdout: "" });
    expect(run.stderr).toContain("stdout");
  });

  test("is distinguished from /dev/null by VERSION too", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$0" >/dev/null', builtProgram()], versions);

    expect(run).toEqual({ exitCode: 0, stdout: "", stderr: "" });
  });
});

describe("stdin", () => {
  test("that was closed before the start cannot be read: code 5", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$0" <&-', builtProgram()], add("plain"));

    expect(cniErrorOfRun(run).code).toBe(5);
  });

  test("that is a directory cannot be read: code 5", async () => {
    const run = await runPlugin(["/bin/sh", "-c", 'exec "$0" < /', builtProgram()], add("plain"));

    expect(cniErrorOfRun(run).code).toBe(5);
  });

  test.each(["file", "socket", "slow pipe"])("is read completely from a %s", async (kind) => {
    const config = JSON.stringify({ ...CONFIG, filler: "x".repeat(200_000) });
    const file = join(folder.path, "config.json");
    await Bun.write(file, config);
    const feed: Readonly<Record<string, string>> = {
      file: '"$@" < "$FILE"',
      socket: 'python3 -c "$FEED" "$@"',
      "slow pipe": '(head -c 1000 "$FILE"; sleep 0.2; tail -c +1001 "$FILE") | "$@"',
    };
    const FEED = [
      "import socket,subprocess,sys,os",
      "a,b=socket.socketpair()",
      "p=subprocess.Popen(sys.argv[1:],stdin=b); b.close()",
      "a.sendall(open(os.environ['FILE'],'rb').read()); a.close(); sys.exit(p.wait())",
    ].join("\n");
    const run = await runPlugin(["/bin/sh", "-c", feed[kind] ?? "", "sh", ...SPY], {
      env: { ...add("plain").env, FILE: file, FEED, PATH: "/usr/bin:/bin" },
    });

    expect(run.exitCode).toBe(0);
    expect(JSON.parse(run.stdout).cniVersion).toBe("1.1.0");
  });
});

describe("a stop signal", () => {
  const start = (spy: string, name: string) => {
    const ready = join(folder.path, `${name}.ready`);
    const undone = join(folder.path, `${name}.undone`);
    const child = Bun.spawn([...SPY], {
      env: add(spy, { SPY_READY: ready, SPY_UNDONE: undone }).env,
      stdin: Buffer.from(JSON.stringify(CONFIG)),
      stdout: "pipe",
      stderr: "pipe",
    });
    return { child, ready, undone };
  };

  test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s lets the handler undo, then ends as interrupted",
    async (signal) => {
      const { child, ready, undone } = start("undoes", signal);
      await pollUntil(() => existsSync(ready), "the plugin to be ready");
      child.kill(signal);

      expect(cniErrorOfRun(await endOf(child)).code).toBe(111);
      expect(readFileSync(undone, "utf8")).toBe("undone");
    },
  );

  test("ends a handler that ignores it, after a grace period", async () => {
    const { child, ready } = start("hangs", "deaf");
    await pollUntil(() => existsSync(ready), "the plugin to be ready");
    child.kill("SIGTERM");

    expect(cniErrorOfRun(await endOf(child)).code).toBe(111);
  });

  test("ends the product while it waits for stdin", async () => {
    const child = Bun.spawn([builtProgram()], {
      env: add("plain").env,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    await pollUntil(() => catchesSigterm(child.pid), "the plugin to handle signals");
    child.kill("SIGTERM");

    expect(cniErrorOfRun(await endOf(child)).code).toBe(111);
    child.stdin.end();
  });
});

/** Whether the process has installed its signal handler. */
function catchesSigterm(pid: number): boolean {
  const caught = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? "0";
  return (BigInt(`0x${caught}`) & (1n << 14n)) !== 0n;
}

async function endOf(child: Bun.Subprocess<"pipe" | Uint8Array, "pipe", "pipe">) {
  const [stdout, stderr, exitCode] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { stdout, stderr, exitCode };
}
