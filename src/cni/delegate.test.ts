import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { ForeignError, PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { type DelegateRequest, delegateAdd, findPlugin, runDelegate } from "./delegate.ts";

const root = mkdtempSync(join(tmpdir(), "cni-delegate-"));
const first = join(root, "first");
const second = join(root, "second");
mkdirSync(join(first, "folder"), { recursive: true });
mkdirSync(second);
afterAll(() => rmSync(root, { recursive: true, force: true }));

function plugin(name: string, script: string, directory = first): string {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}

function request(type: string, more: Partial<DelegateRequest> = {}): DelegateRequest {
  return {
    type,
    command: "ADD",
    environment: { PATH: "/usr/bin:/bin", CNI_PATH: `${first}:${second}`, CNI_COMMAND: "STATUS" },
    stdin: Buffer.from('{"name":"net"}'),
    limitMilliseconds: 10_000,
    signal: new AbortController().signal,
    ...more,
  };
}

async function failureOf(action: Promise<unknown>): Promise<unknown> {
  try {
    await action;
  } catch (failure) {
    return failure;
  }
  throw new Error("Nothing was thrown");
}

describe("what a delegate writes to stderr", () => {
  const spoken = async (script: string) => {
    plugin("speaker", script);
    let heard = "";
    const stderr = (text: string) => {
      heard += text;
    };
    const started = performance.now();
    await runDelegate(request("speaker", { stderr }));
    return { heard, milliseconds: performance.now() - started };
  };

  test("is passed on completely", async () => {
    expect((await spoken("seq 1 20000 >&2")).heard).toEndWith("19999\n20000\n");
  });

  test("is not waited for while a grandchild keeps it open", async () => {
    const { heard, milliseconds } = await spoken("echo before >&2; sleep 20 >/dev/null & exit 0");

    expect(heard).toBe("before\n");
    expect(milliseconds).toBeLessThan(15_000);
  });
});

describe("findPlugin()", () => {
  const environment = { CNI_PATH: `${first}::${second}` };

  test("uses the first directory that contains it", () => {
    const path = plugin("twice", "exit 0");
    plugin("twice", "exit 0", second);
    const later = plugin("later", "exit 0", second);

    expect(findPlugin("twice", environment)).toEqual({ path, place: statusAt(path)?.place ?? "" });
    expect(findPlugin("later", environment)).toEqual({ path: later, place: statusAt(later)?.place ?? "" });
  });

  test.each([
    ["", "config-invalid"],
    ["../twice", "config-invalid"],
    ["/bin/sh", "config-invalid"],
    ["folder", "delegate-failed"],
    ["..", "delegate-failed"],
    ["sh", "delegate-failed"],
  ])("refuses %p", (type, kind) => {
    expect(thrownBy(() => findPlugin(type, environment))).toMatchObject({ kind });
  });

  test("names the type and the directories it searched", () => {
    expect(String(thrownBy(() => findPlugin("absent", environment)))).toMatch(
      new RegExp(`"absent".*${first}, ${second}`),
    );
  });

  test("does not search the working directory when CNI_PATH is empty", () => {
    expect(thrownBy(() => findPlugin("package.json", { CNI_PATH: "" }))).toMatchObject({ kind: "delegate-failed" });
  });
});

describe("runDelegate()", () => {
  test("passes the config byte for byte, and the environment with its own CNI_COMMAND and without BUN_*", async () => {
    plugin("spy", 'cat; printf "|%s|%s|%s" "$CNI_COMMAND" "$KEPT" "$BUN_BE_BUN"');
    const base = request("spy", { command: "DEL", stdin: Buffer.from(' {"a" : 1}\n') });
    const environment = { ...base.environment, KEPT: "kept", BUN_BE_BUN: "1" };

    expect(await runDelegate({ ...base, environment })).toBe(' {"a" : 1}\n|DEL|kept|');
  });

  test("accepts a delegate that never reads its stdin", async () => {
    plugin("deaf", "exit 0");

    expect(await runDelegate(request("deaf", { stdin: Buffer.alloc(300_000, 32) }))).toBe("");
  });

  test("passes an error on with its own code, message and details", async () => {
    plugin("failing", `echo '{"cniVersion":"1.0.0","code":777,"msg":"no","details":"why"}'; exit 1`);
    const failure = await failureOf(runDelegate(request("failing")));

    expect(failure).toBeInstanceOf(ForeignError);
    expect(failure).toMatchObject({ cniCode: 777, message: "no", details: "why" });
  });

  test.each([
    ["nothing", "exit 3"],
    ["something that is not JSON", "echo oops; exit 1"],
    ["JSON that is not an error", "echo '{}'; exit 1"],
    ["code 0", `echo '{"code":0,"msg":"x"}'; exit 1`],
    ["a signal", "kill -9 $$"],
  ])("fails with delegate-failed if a delegate fails with %s", async (_, script) => {
    plugin("mute", script);

    expect(await failureOf(runDelegate(request("mute")))).toMatchObject({ kind: "delegate-failed" });
  });

  test("refuses a file that cannot be executed", async () => {
    chmodSync(plugin("plain", "exit 0"), 0o644);

    expect(await failureOf(runDelegate(request("plain")))).toMatchObject({ kind: "delegate-failed" });
  });

  test("kills a delegate that exceeds its limit", async () => {
    const note = join(root, "pid");
    plugin("slow", `echo $$ > ${note}; exec sleep 60`);
    const failure = await failureOf(runDelegate(request("slow", { limitMilliseconds: 300 })));

    expect(failure).toMatchObject({ kind: "delegate-failed" });
    await untilGone(Number(await Bun.file(note).text()));
  });

  test("kills the processes that the delegate started too", async () => {
    const note = join(root, "grandchild");
    plugin("parent", `sleep 60 & echo $! > ${note}; wait`);
    const failure = await failureOf(runDelegate(request("parent", { limitMilliseconds: 300 })));

    expect(failure).toMatchObject({ kind: "delegate-failed" });
    await untilGone(Number(await Bun.file(note).text()));
  });

  test("tries again if the executable is still being written", async () => {
    const path = join(first, "installing");
    copyFileSync("/bin/true", path);
    chmodSync(path, 0o755);
    const writer = openSync(path, "r+");
    setTimeout(() => closeSync(writer), 100);

    expect(await runDelegate(request("installing"))).toBe("");
  });

  test("asks a delegate to stop when the call is interrupted, and passes its error on", async () => {
    const controller = new AbortController();
    const ready = join(root, "ready");
    plugin(
      "polite",
      `trap 'echo "{\\"code\\":111,\\"msg\\":\\"stopped\\"}"; exit 1' TERM; : > ${ready}; while :; do sleep 0.05; done`,
    );
    const running = failureOf(runDelegate(request("polite", { signal: controller.signal })));
    for (let tries = 0; tries < 200 && !(await Bun.file(ready).exists()); tries += 1) await Bun.sleep(10);
    controller.abort();

    expect(await running).toMatchObject({ cniCode: 111, message: "stopped" });
  });
});

describe("delegateAdd()", () => {
  test.each([
    ["of its own version", '{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/24"}}'],
    ["without a version, in the config's version", '{"ips":[{"address":"10.0.0.2/24"}]}'],
  ])("reads a result %s", async (_, output) => {
    plugin("ipam", `echo '${output}'`);

    expect((await delegateAdd(request("ipam"), "1.0.0")).ips[0]?.address).toBe("10.0.0.2/24");
  });

  test.each(["garbage", "", "[]", "null", '{"cniVersion":"9.9.9"}', '{"ips":[{"address":"x"}]}'])(
    "refuses the output %p of a delegate that succeeded",
    async (output) => {
      plugin("odd", `echo '${output}'`);
      const failure = await failureOf(delegateAdd(request("odd"), "1.0.0"));

      expect(failure).toBeInstanceOf(PluginError);
      expect(failure).toMatchObject({ kind: "delegate-failed" });
    },
  );
});

describe("the output of a delegate", () => {
  test("is limited: one that prints without end is stopped", async () => {
    plugin("endless", "exec yes");
    const failure = await failureOf(delegateAdd(request("endless"), "1.0.0"));

    expect(failure).toMatchObject({ kind: "delegate-failed", message: expect.stringContaining("more than 16777216") });
  });
});

async function untilGone(pid: number): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if (!(await runs(pid))) return;
    await Bun.sleep(10);
  }
  throw new Error(`Process ${pid} still exists`);
}

/** A zombie process (Z) does not run. */
async function runs(pid: number): Promise<boolean> {
  try {
    return !/^State:\s+Z/m.test(await Bun.file(`/proc/${pid}/status`).text());
  } catch {
    return false;
  }
}
