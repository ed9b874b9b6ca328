/** The plugin is killed before each message to the kernel, and so after each: the command that follows leaves nothing. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { canMakeNetns, NetnsArea } from "../support/netns.ts";
import { RATES, ShapedPod } from "./shaped-pod.ts";

const area = new NetnsArea("bwkill");
const able = canMakeNetns && Bun.which("tc") !== null && Bun.which("strace") !== null;
const why = able ? "" : " (skipped: needs root, ip, tc, nsenter and strace)";
/** More messages than any command sends. */
const LIMIT = 40;
const KILLED = 137;

describe.skipIf(!able)(`bandwidth plugin killed at any message${why}`, () => {
  beforeAll(() => area.sweep());
  afterAll(() => area.sweep());

  const dyingAt = (message: number) => {
    const inject = `inject=sendto:signal=SIGKILL:when=${message}`;
    return ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", "trace=sendto", "-e", inject];
  };
  const GC = { config: { "cni.dev/valid-attachments": [] } };

  /** Kills the command at its first message, at its second … until one run survives; returns how many were killed. */
  async function killAtEach(pod: ShapedPod, command: string, then: () => Promise<void>): Promise<number> {
    for (let message = 1; message < LIMIT; message++) {
      const { exitCode } = await pod.call(command, { config: RATES, under: dyingAt(message) });
      if (exitCode === 0) return message - 1;
      expect(exitCode).toBe(KILLED);
      await then();
    }
    throw new Error(`${command} still sent messages after ${LIMIT} of them`);
  }

  test.each([
    ["DEL", (pod: ShapedPod) => pod.must("DEL", { config: RATES })],
    ["a DEL without prevResult", (pod: ShapedPod) => pod.must("DEL", { config: { prevResult: undefined } })],
  ])("a killed ADD is cleaned up by %s", async (_name, clear) => {
    const pod = new ShapedPod(area);
    const untouched = pod.traces();
    const died = await killAtEach(pod, "ADD", async () => {
      await clear(pod);
      expect(pod.traces()).toBe(untouched);
    });

    expect(died).toBeGreaterThan(4);
  });

  test("a killed ADD is cleaned up by GC, and completed by the next ADD", async () => {
    const pod = new ShapedPod(area);
    const died = await killAtEach(pod, "ADD", async () => {
      await pod.must("GC", GC);
      expect(pod.ifbs()).toEqual([]);
      expect(pod.redirections()).toEqual([]);
      await pod.must("ADD", { config: RATES });
      await pod.must("CHECK", { config: RATES });
      await pod.must("DEL", { config: RATES });
    });

    expect(died).toBeGreaterThan(4);
  });

  test.each(["DEL", "GC"])("a killed DEL is completed by %s", async (next) => {
    const pod = new ShapedPod(area);
    await pod.must("ADD", { config: RATES });
    const died = await killAtEach(pod, "DEL", async () => {
      await pod.must(next, next === "GC" ? GC : { config: RATES });
      expect(pod.ifbs()).toEqual([]);
      expect(pod.redirections()).toEqual([]);
      await pod.must("ADD", { config: RATES });
    });

    expect(died).toBeGreaterThan(4);
    expect(pod.ifbs()).toEqual([]);
  });
});
