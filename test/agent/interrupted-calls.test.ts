/** Calls in progress while their caller is stopped or killed, or the agent is stopped. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { encodeCall } from "../../src/agent/calls/handed-call.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { failureOf, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { type Agent, SOCKET, startAgent } from "./agent.ts";
import { makeSpyIpam, type SpyIpam } from "./spy-ipam.ts";

const test = testNeeding(hostProblem());
const INTERRUPTED = 111;
/** 128 + SIGKILL. */
const KILLED = 137;
/** The time that the agent has to undo its work, and more for a busy machine. */
const UNDONE_LIMIT = 20_000;

describe("a call in progress in the node agent", () => {
  let site: PluginSite;
  let agent: Agent;
  let pod: Pod;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    if (hostProblem() !== undefined) return;
    agent = await startAgent(site.host);
    pod = await site.makePod();
  });
  afterEach(async () => {
    if (hostProblem() !== undefined || !existsSync(site.host.view(SOCKET))) return;
    await agent.signal("KILL");
    await agent.ended;
  });

  /** Starts an ADD that waits for an address. */
  const beginAdd = async (spy: SpyIpam) => {
    const pidFile = `${site.host.directory}/caller.pid`;
    const finished = site.host.run(["sh", "-c", `echo $$ > ${pidFile}; exec ${builtProgram()}`], {
      stdin: JSON.stringify(spy.options.config),
      environment: { ...environmentOf(pod), ...spy.options.environment },
    });
    await spy.asked();
    const pid = readFileSync(site.host.view(pidFile), "utf8").trim();
    return { finished, kill: (signal: string) => site.host.must(["kill", `-${signal}`, pid]) };
  };
  const expectUndone = async (spy: SpyIpam) => {
    await pollUntil(() => agent.served().length === 1, "the agent to undo the call", UNDONE_LIMIT);
    expect([agent.served(), spy.calls()]).toEqual([["plugin ADD: exit code 1"], ["ADD", "DEL"]]);
    expect(await site.left()).toEqual([]);
  };

  for (const signal of ["TERM", "INT", "HUP"] as const) {
    test(`is undone if the caller receives SIG${signal}, which exits with error ${INTERRUPTED}`, async () => {
      const spy = makeSpyIpam(site, "waits");
      const { finished, kill } = await beginAdd(spy);
      await kill(signal);

      expect(failureOf(await finished).code).toBe(INTERRUPTED);
      await expectUndone(spy);
    });
  }

  test("is undone if the caller is killed", async () => {
    const spy = makeSpyIpam(site, "waits");
    const { finished, kill } = await beginAdd(spy);
    await kill("KILL");

    expect(await finished).toEqual({ code: KILLED, stdout: "", stderr: "" });
    await expectUndone(spy);
  });

  testNeeding(hostProblem(), program("python3"))(
    "is undone if its caller disconnected before it began: the following DEL may have run already",
    async () => {
      const stdin = new TextEncoder().encode(JSON.stringify(site.config()));
      const call = encodeCall({ program: "plugin", environment: environmentOf(pod), stdin });
      writeFileSync(site.host.view("/run/vt/call"), call);
      await site.host.must(["python3", "-c", HANDS_OVER_AND_GOES, SOCKET, "/run/vt/call", String(agent.server.pid)]);
      await site.quietly("DEL", pod);
      await agent.server.signal("CONT");

      await pollUntil(() => agent.served().length === 1, "the agent to come to the call");
      expect(agent.served()).toEqual(["plugin ADD: exit code 1"]);
      expect(await site.left()).toEqual([]);
    },
  );

  test("is finished if the agent is stopped, which accepts no other and removes its socket", async () => {
    const spy = makeSpyIpam(site, "waits");
    const { finished } = await beginAdd(spy);
    await agent.signal("TERM");
    await pollUntil(() => agent.log().includes("stopping on SIGTERM"), "the agent to hear the signal");
    const other = await site.makePod();
    await site.add(other);
    expect(agent.served()).toEqual([]);
    spy.letGo();

    const { code, stdout } = await finished;
    expect([code, JSON.parse(stdout).ips]).toEqual([0, [{ interface: 1, address: "10.77.0.5/32" }]]);
    expect(await agent.ended).toBe(0);
    expect([agent.served(), existsSync(site.host.view(SOCKET))]).toEqual([["plugin ADD: exit code 0"], false]);
    await site.quietly("DEL", pod, spy.options);
    await site.quietly("DEL", other);
    expect(await site.left()).toEqual([]);
  });

  testNeeding(hostProblem(), program("python3"))("does not include a mere connection: the agent exits", async () => {
    const CONNECTS =
      "import socket,sys,time;s=socket.socket(socket.AF_UNIX);s.connect(sys.argv[1]);s.recv(9);print(flush=True);time.sleep(60)";
    const idle = site.host.start(["python3", "-c", CONNECTS, SOCKET], "idle.log");
    await pollUntil(
      () =>
        existsSync(site.host.view("/run/vt/idle.log")) && readFileSync(site.host.view("/run/vt/idle.log")).length > 0,
      "a caller to be greeted",
    );
    await agent.signal("TERM");

    expect(await endedWithin(agent, 20_000)).toBe(0);
    idle.kill();
  });

  test("passes the caller's arguments and environment to an IPAM plugin that the agent executes", async () => {
    const spy = makeSpyIpam(site, "nothing");
    const sent = {
      CNI_ARGS: "IgnoreUnknown=1;COLOUR=red",
      OF_THE_CALLER: "a b = c",
      PATH: "/usr/bin:/bin:/of/the/caller",
    };
    await site.add(pod, { ...spy.options, environment: { ...spy.options.environment, ...sent } });

    expect(spy.environment()).toMatchObject({ ...sent, CNI_CONTAINERID: pod.containerId, CNI_NETNS: pod.netns });
    expect(await agent.hasServed(1)).toEqual(["plugin ADD: exit code 0"]);
    await site.quietly("DEL", pod, spy.options);
    expect(await site.left()).toEqual([]);
  });
});

/** Receives the greeting, freezes the agent, sends its call, and disconnects. */
const HANDS_OVER_AND_GOES = `
import os, signal, socket, sys
agent = socket.socket(socket.AF_UNIX)
agent.connect(sys.argv[1])
agent.recv(4096)
os.kill(int(sys.argv[3]), signal.SIGSTOP)
agent.sendall(open(sys.argv[2], "rb").read())
`;

function environmentOf(pod: Pod): Readonly<Record<string, string>> {
  return {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: pod.containerId,
    CNI_NETNS: pod.netns,
    CNI_IFNAME: pod.ifname,
    CNI_PATH: "/usr/lib/cni",
  };
}

function endedWithin(agent: Agent, milliseconds: number): Promise<number | "still there"> {
  return Promise.race([agent.ended, Bun.sleep(milliseconds).then(() => "still there" as const)]);
}
