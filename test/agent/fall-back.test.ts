/** Whatever is wrong with the agent, the plugin's process does the call itself. */

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect } from "bun:test";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { greetingOf } from "../../src/agent/calls/greeting.ts";
import { putText } from "../../src/bytes.ts";
import { identity } from "../../src/identity.ts";
import { VERSION } from "../../src/version.ts";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";
import { type Agent, SOCKET, startAgent } from "./agent.ts";
import { makeSpyIpam } from "./spy-ipam.ts";

const test = testNeeding(hostProblem());
/** The most that a frozen agent may delay a call. */
const FROZEN_LIMIT = 15_000;

describe("a plugin does its work itself", () => {
  let site: PluginSite;
  beforeAll(async () => {
    if (hostProblem() === undefined) site = await openPluginSite("embedded");
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  /** ADD, CHECK and DEL of a pod. */
  const live = async (more: { under?: readonly string[]; limitMilliseconds?: number } = {}) => {
    const pod = await site.makePod();
    const call = (command: "ADD" | "CHECK" | "DEL", config = site.config()) =>
      site.host.run([...(more.under ?? []), builtProgram()], {
        stdin: JSON.stringify(config),
        environment: environmentOf(command, pod),
        limitMilliseconds: more.limitMilliseconds ?? 30_000,
      });
    const added = await call("ADD");
    expect(added).toMatchObject({ code: 0, stderr: NOTHING_UNUSUAL });
    const checked = await call("CHECK", site.config({ prevResult: JSON.parse(added.stdout) }));
    expect(checked).toEqual({ code: 0, stdout: "", stderr: "" });
    const linksMeanwhile = await linksOfHost();
    expect(await call("DEL")).toEqual({ code: 0, stdout: "", stderr: NOTHING_UNUSUAL });
    expect(await site.left()).toEqual([]);
    return { linksMeanwhile };
  };
  const linksOfHost = async () => (await site.host.must(["ip", "-o", "link"])).trim().split("\n").length;

  test("if no agent runs", async () => {
    expect(existsSync(site.host.view(SOCKET))).toBe(false);
    await live();
  });

  test("if a dead agent left its socket", async () => {
    const agent = await startAgent(site.host);
    await agent.signal("KILL");
    await agent.ended;
    expect(existsSync(site.host.view(SOCKET))).toBe(true);
    await live();
  });

  describe("if another server listens that", () => {
    const greeting = Buffer.from(
      greetingOf(VERSION, (bytes, at) => (putText(bytes, at, "elsewhere") ?? at) - at),
    ).toString();
    const IMPOSTORS = [
      { title: "is of another version", greeting: greeting.replace(VERSION, "0.0.0") },
      { title: "is in other namespaces", greeting },
      { title: "says something else", greeting: "HTTP/1.1 200 OK\r\n\r\n" },
    ];
    for (const { title, greeting } of IMPOSTORS) {
      test(`${title}, and sends it nothing`, async () => {
        const heard = { connections: 0, bytes: 0 };
        const path = site.host.view(SOCKET);
        mkdirSync(dirname(path), { recursive: true });
        rmSync(path, { force: true });
        using _ = Bun.listen({
          unix: path,
          socket: {
            open(socket) {
              heard.connections += 1;
              socket.write(greeting);
            },
            data(_socket, bytes) {
              heard.bytes += bytes.length;
            },
          },
        });
        await live({ limitMilliseconds: FROZEN_LIMIT });

        expect(heard).toEqual({ connections: 3, bytes: 0 });
      });
    }
  });

  test("if an agent accepts the call and disconnects without a reply", async () => {
    // The greeting of an agent in the same namespaces.
    const greeting = await site.host.must([
      "sh",
      "-c",
      `echo "${VERSION} $(readlink /proc/self/ns/net) $(readlink /proc/self/ns/mnt)"`,
    ]);
    let bytes = 0;
    const path = site.host.view(SOCKET);
    rmSync(path, { force: true });
    using _ = Bun.listen({
      unix: path,
      socket: {
        open: (socket) => void socket.write(greeting),
        data(socket, piece) {
          bytes += piece.length;
          socket.terminate();
        },
      },
    });
    await live();

    expect(bytes).toBeGreaterThan(3 * 100);
  });

  describe("although an agent runs", () => {
    let agent: Agent;
    beforeEach(async () => {
      if (hostProblem() === undefined) agent = await startAgent(site.host);
    });
    afterEach(async () => {
      if (hostProblem() !== undefined) return;
      await agent.signal("KILL");
      await agent.ended;
    });

    test("from another network namespace", async () => {
      await site.host.must(["ip", "netns", "add", "vt-elsewhere"]);
      const { linksMeanwhile } = await live({ under: ["nsenter", "--net=/run/netns/vt-elsewhere"] });

      expect([linksMeanwhile, agent.served()]).toEqual([1, []]);
    });

    test("from another mount namespace", async () => {
      const { linksMeanwhile } = await live({ under: ["unshare", "--mount"] });

      expect([linksMeanwhile, agent.served()]).toEqual([2, []]);
    });

    test("if paths are relative to the current directory, which the agent does not share", async () => {
      const { netnsName, ...pod } = await site.makePod();
      const there = (command: string, more: Readonly<Record<string, string>>) =>
        site.host.must(["sh", "-c", `cd /run/netns && exec ${builtProgram()}`], {
          stdin: JSON.stringify(site.config()),
          environment: { ...environmentOf(command, { ...pod, netnsName }), ...more },
        });
      await there("ADD", { CNI_NETNS: netnsName });
      await there("DEL", { CNI_PATH: "/usr/lib/cni:../bin" });
      expect([await site.left(), agent.served()]).toEqual([[], []]);
    });

    test("if a trace is requested, which is about a process", async () => {
      const pod = await site.makePod();
      const environment = { [`${identity.environmentPrefix}TRACE`]: "1" };
      expect((await site.call("ADD", pod, { environment })).stderr).toMatch(/^trace ADD: boot /m);
      await site.quietly("DEL", pod);

      expect(await agent.hasServed(1)).toEqual(["plugin DEL: exit code 0"]);
    });

    test("while the agent is frozen, and hands over again afterwards", async () => {
      await agent.server.signal("STOP");
      await live({ limitMilliseconds: FROZEN_LIMIT });
      await agent.server.signal("CONT");
      await live();

      expect(await agent.hasServed(3)).toEqual(
        ["ADD", "CHECK", "DEL"].map((command) => `plugin ${command}: exit code 0`),
      );
    });

    test("while the agent is frozen and its queue of connections is full", async () => {
      await agent.server.signal("STOP");
      await site.host.must(["python3", "-c", FILLS_THE_QUEUE, SOCKET]);
      await live({ limitMilliseconds: FROZEN_LIMIT });
      await agent.server.signal("CONT");
      await pollUntil(() => agent.server.holds().descriptors < 30, "the agent to let go of those that gave up");
      await live();

      expect(await agent.hasServed(3)).toHaveLength(3);
    });

    test("from the beginning, if the call server is killed in the middle of an ADD", async () => {
      const kills = `[ "$(grep -c ADD /opt/spies/calls)" = 2 ] || kill -KILL ${agent.server.pid}`;
      const spy = makeSpyIpam(site, { runs: kills });
      const pod = await site.makePod();
      const result = await site.add(pod, spy.options);

      expect(result.ips).toEqual([{ address: "10.77.0.5/32", interface: 1 }]);
      expect([spy.calls(), agent.served()]).toEqual([["ADD", "ADD"], []]);
      await site.quietly("DEL", pod, spy.options);
      expect(await site.left()).toEqual([]);
    });
  });
});

/** Connects without waiting until the queue is full, and exits: its connections stay in the queue. */
const FILLS_THE_QUEUE = `
import socket, sys
ends = []
try:
    while True:
        end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end.setblocking(False)
        end.connect(sys.argv[1])
        ends.append(end)
except BlockingIOError:
    pass
`;

function environmentOf(command: string, pod: Pod): Readonly<Record<string, string>> {
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: pod.containerId,
    CNI_NETNS: pod.netns,
    CNI_IFNAME: pod.ifname,
    CNI_PATH: "/usr/lib/cni",
  };
}
