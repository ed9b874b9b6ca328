/** Calls are served in a separate process: they do not wait for the agent's other work, and each process may be killed. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { buildWithCrashPoints, type CrashBuild } from "../support/crash-build.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { type Agent, startAgent } from "./agent.ts";
import { handOver } from "./hand-over.ts";

const test = testNeeding(hostProblem());
const CALLS = 50;
const BLOCKED_MILLISECONDS = 1_000;
const WORKERS = 6;
const KILLS = 8;
const LIMIT = 120_000;
/** Instead of 3 minutes. */
const WATCH_MILLISECONDS = 10_000;
/** 128 + SIGALRM. */
const ENDED_BY_ALARM = 142;

describe("calls served by the node agent", () => {
  let site: PluginSite;
  let build: CrashBuild;
  beforeAll(async () => {
    if (hostProblem() !== undefined) return;
    build = buildWithCrashPoints();
    site = await openPluginSite("embedded");
  });
  afterAll(async () => {
    build?.remove();
    await site?.[Symbol.asyncDispose]();
  });

  /** Runs them while the agent is blocked for at least a second, and until all of them have ended. */
  const whileBlocked = async (calls: () => Promise<unknown>) => {
    const file = `${site.host.directory}/block`;
    const agent = await startAgent(site.host, {
      program: join(build.directory, identity.nodeAgent),
      environment: { [`${identity.environmentPrefix}FAULT`]: `block ${file}` },
    });
    site.host.writeFile(file, "");
    await pollUntil(() => agent.log().includes(": blocked\n"), "the other work to block");
    const began = performance.now();
    await calls();
    await pollUntil(() => performance.now() - began > BLOCKED_MILLISECONDS, "the second to pass");
    const served = await agent.hasServed(CALLS);
    const isBlockedStill = !agent.log().includes("no longer blocked");
    rmSync(site.host.view(file));
    await agent.signal("TERM");
    expect(await agent.ended).toBe(0);
    return { served, isBlockedStill };
  };
  const all = (command: string) => Array.from({ length: CALLS }, () => `plugin ${command}: exit code 0`);

  test(
    "do not wait for its other work: 50 at once, and 50 in a row",
    async () => {
      const pods = await Promise.all(Array.from({ length: CALLS }, () => site.makePod()));
      // Handed over by the test itself, which waits without a limit: a plugin on a busy machine might fall back.
      const atOnce = async () => {
        const exitCodes = await Promise.all(pods.map((pod) => handOver(site, "ADD", pod)));
        expect([...new Set(exitCodes)]).toEqual([0]);
      };
      const inARow = async () => {
        for (const pod of pods) await site.quietly("DEL", pod);
      };

      expect(await whileBlocked(atOnce)).toEqual({ served: all("ADD"), isBlockedStill: true });
      expect(await whileBlocked(inARow)).toEqual({ served: all("DEL"), isBlockedStill: true });
      expect(await site.left()).toEqual([]);
    },
    LIMIT,
  );
});

describe("an agent that is blocked for long", () => {
  testNeeding(hostProblem())(
    "is ended by the kernel, so that it is started again",
    async () => {
      const build = buildWithCrashPoints();
      await using site = await openPluginSite("embedded");
      const file = `${site.host.directory}/block`;
      const agent = await startAgent(site.host, {
        program: join(build.directory, identity.nodeAgent),
        environment: {
          [`${identity.environmentPrefix}FAULT`]: `block ${file}`,
          [`${identity.environmentPrefix}FAULT_LIMIT`]: String(WATCH_MILLISECONDS),
        },
      });
      // Before any network is installed: the watch begins with the process.
      site.host.writeFile(file, "");

      expect(await agent.ended).toBe(ENDED_BY_ALARM);
      build.remove();
    },
    LIMIT,
  );
});

describe("the two processes of the node agent", () => {
  let site: PluginSite;
  let agent: Agent;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    if (hostProblem() === undefined) agent = await startAgent(site.host);
  });
  afterEach(async () => {
    if (hostProblem() !== undefined) return;
    await agent.signal("KILL");
    await agent.ended;
  });

  const live = async (pod: Pod) => {
    const prevResult = await site.add(pod);
    await site.quietly("CHECK", pod, { config: site.config({ prevResult }) });
    await site.quietly("DEL", pod);
  };
  const servers = () => agent.log().match(/serves the plugins' calls/g)?.length ?? 0;
  const replaceAgent = async () => {
    await agent.signal("KILL");
    await agent.ended;
    agent = await startAgent(site.host);
  };

  test("the call server is restarted if it is killed, and the agent logs it", async () => {
    await agent.server.signal("KILL");
    await pollUntil(() => servers() === 2, "another one to serve");
    await live(await site.makePod());

    expect(agent.log()).toMatch(/\[WARNING\].* the call server failed \(SIGKILL\): starting it again in 100 ms/);
    expect(await agent.hasServed(3)).toHaveLength(3);
    expect(await site.left()).toEqual([]);
  });

  test("the call server ends if the agent is killed, and a new agent takes over at once", async () => {
    const before = agent.server.pid;
    await replaceAgent();
    await live(await site.makePod());

    expect(await site.host.run(["kill", "-0", String(before)])).toMatchObject({ code: 1 });
    expect(await agent.hasServed(3)).toHaveLength(3);
  });

  test("the call server ends with the agent even if it is frozen", async () => {
    await agent.server.signal("STOP");
    await replaceAgent();
    await live(await site.makePod());

    expect(await agent.hasServed(3)).toHaveLength(3);
  });

  test(
    "may be killed alternately while calls are in progress: every caller finishes, and nothing is left",
    async () => {
      const pods = await Promise.all(Array.from({ length: WORKERS }, () => site.makePod()));
      let isOver = false;
      const working = pods.map(async (pod) => {
        let lives = 0;
        for (; !isOver; lives++) await live(pod);
        return lives;
      });
      for (let kills = 0; kills < KILLS; kills++) {
        const servedBefore = agent.served().length;
        await pollUntil(() => agent.served().length > servedBefore, "a call to be served");
        const serversBefore = servers();
        if (kills % 2 === 0) await replaceAgent();
        else {
          await agent.server.signal("KILL");
          await pollUntil(() => servers() > serversBefore, "another one to serve");
        }
      }
      isOver = true;

      for (const lives of await Promise.all(working)) expect(lives).toBeGreaterThan(0);
      expect(await site.left()).toEqual([]);
    },
    LIMIT,
  );
});
