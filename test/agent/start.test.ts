/** How the node agent starts, and when it refuses to. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, BIN, launchAgent, SOCKET, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());
const RUN_DIRECTORY = `${identity.environmentPrefix}RUN_DIRECTORY`;

describe("the node agent", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const live = async (environment: Readonly<Record<string, string>> = {}) => {
    const pod = await site.makePod();
    await site.add(pod, { environment });
    await site.quietly("DEL", pod, { environment });
    expect(await site.left()).toEqual([]);
  };

  test("prints its version", async () => {
    const printed = await site.host.must([builtProgram(identity.nodeAgent), "-v"]);
    expect(printed).toBe(`${identity.nodeAgent} ${VERSION}\n`);
  });

  test("spends memory for speed only in the call server", async () => {
    const agent = await startAgent(site.host);
    const tuningOf = ({ pid }: { readonly pid: number }) =>
      readFileSync(site.host.view(`/proc/${pid}/environ`), "utf8")
        .split("\0")
        .filter((variable) => /^(MIMALLOC|BUN)_/.test(variable))
        .sort();

    expect(tuningOf(agent)).toEqual(["BUN_JSC_useFTLJIT=0"]);
    expect(tuningOf(agent.server)).toEqual([
      "BUN_JSC_jitPolicyScale=0.1",
      "BUN_JSC_useFTLJIT=0",
      "MIMALLOC_PURGE_DELAY=-1",
    ]);
    await agent.signal("KILL");
    await agent.ended;
  });

  test("refuses to start if another agent runs, which continues serving", async () => {
    const first = await startAgent(site.host);
    const second = launchAgent(site.host);

    expect(await second.ended).toBe(1);
    expect(second.log()).toMatch(/Cannot start: another agent serves this host/);
    await live();
    expect(await first.hasServed(2)).toHaveLength(2);
    await first.signal("KILL");
    await first.ended;
  });

  test("replaces one that was killed", async () => {
    const first = await startAgent(site.host);
    await first.signal("KILL");
    await first.ended;
    const second = await startAgent(site.host);
    await live();

    expect([first.served().length, (await second.hasServed(2)).length]).toEqual([0, 2]);
    await second.signal("TERM");
    expect(await second.ended).toBe(0);
  });

  /** Like a killed agent that the kernel has not ended yet: a process that holds the lock, and does not greet. */
  const holdLock = async (seconds: number) => {
    const lock = `${dirname(SOCKET)}/lock`;
    const holder = site.host.start(["flock", "--no-fork", lock, "sleep", String(seconds)], "holder.log");
    await pollUntil(async () => (await site.host.run(["flock", "--nonblock", lock, "true"])).code !== 0, "the lock");
    return holder;
  };
  /** Signal 15 is the bit 0x4000. */
  const isHandlingTerm = ({ pid }: Agent) =>
    /^SigCgt:\t[0-9a-f]{12}[4-7c-f]/m.test(readFileSync(site.host.view(`/proc/${pid}/status`), "utf8"));

  test("waits for one that was killed and has not ended yet", async () => {
    const dying = await holdLock(2);
    const agent = await startAgent(site.host);

    expect(await dying.exited).toBe(0);
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);
  });

  test("ends at once if it is stopped while it waits for another one", async () => {
    const dying = await holdLock(2);
    const agent = launchAgent(site.host);
    await pollUntil(() => isHandlingTerm(agent), "the agent to wait");
    await agent.signal("TERM");

    expect([await agent.ended, agent.log()]).toEqual([0, ""]);
    expect(await dying.exited).toBe(0);
  });

  test("listens in a directory that only its owner may enter, even if it existed before", async () => {
    await site.host.must(["sh", "-c", `mkdir -p ${dirname(SOCKET)}; chmod 777 ${dirname(SOCKET)}`]);
    const agent = await startAgent(site.host);

    expect(statSync(site.host.view(dirname(SOCKET))).mode & 0o777).toBe(0o700);
    await agent.signal("TERM");
    await agent.ended;
  });

  test("serves processes with the same run directory", async () => {
    const environment = { [RUN_DIRECTORY]: "/run/vt/elsewhere" };
    const agent = await startAgent(site.host, { environment });
    await live();
    expect(agent.served()).toEqual([]);
    await live(environment);
    expect(await agent.hasServed(2)).toHaveLength(2);
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);
  });

  /** The agent in a directory that every user may enter: the clone may be in one that only root may enter. */
  const programForAnyUser = async () => {
    const directory = "/run/vt/bin";
    await site.host.must(["mkdir", "-p", "-m", "755", directory]);
    await site.host.must(["mount", "--bind", BIN, directory]);
    return `${directory}/${identity.nodeAgent}`;
  };

  const unusable = [
    { why: "a file in its place", directory: "/run/vt/file", under: [], reason: "part of its path is not a directory" },
    {
      why: "no permission",
      directory: "/run/vt/locked",
      under: ["setpriv", "--reuid=65534", "--clear-groups"],
      reason: "permission denied (run it as root)",
    },
  ];
  for (const { why, directory, under, reason } of unusable) {
    test(`refuses a run directory that it cannot use, in one line: ${why}`, async () => {
      await site.host.must(["sh", "-c", "mkdir -p -m 700 /run/vt/locked; echo > /run/vt/file"]);
      const program = await programForAnyUser();
      const agent = launchAgent(site.host, { program, environment: { [RUN_DIRECTORY]: directory }, under });

      expect(await agent.ended).toBe(1);
      expect(agent.log()).toBe(
        `${identity.nodeAgent}: Cannot start: the directory "${directory}/agent" cannot be used: ${reason}\n`,
      );
    });
  }

  test("refuses a run directory that is too long with the reason, and the plugins work without it", async () => {
    const environment = { [RUN_DIRECTORY]: `/run/vt/${"long".repeat(30)}` };
    const agent = launchAgent(site.host, { environment });

    expect(await agent.ended).toBe(1);
    expect(agent.log()).toMatch(/Cannot start: ".*" is too long for a socket: choose a shorter run directory/);
    await live(environment);
  });
});
