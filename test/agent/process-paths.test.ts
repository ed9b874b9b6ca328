/** A namespace that only the calling process can name is resolved by it, never by the agent. */

import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { NOTHING_UNUSUAL } from "../support/stderr.ts";
import { type Agent, startAgent } from "./agent.ts";

const test = testNeeding(hostProblem());
const DESCRIPTOR = 9;

describe("with the node agent, CNI_NETNS", () => {
  let site: PluginSite;
  let agent: Agent;
  beforeAll(async () => {
    if (hostProblem() !== undefined) return;
    site = await openPluginSite("embedded");
    agent = await startAgent(site.host);
    const [self, file] = ["/run/vt-self", "/run/vt-file"];
    await site.host.must(["ln", "-s", "/proc/self/fd", self]);
    await site.host.must(["ln", "-s", `${self}/${DESCRIPTOR}`, file]);
    await site.host.must(["ln", "-s", `/proc/self/fd/${DESCRIPTOR}`, "/run/netns/vt-link"]);
  });
  afterAll(async () => {
    await agent?.signal("TERM");
    await agent?.ended;
    await site?.[Symbol.asyncDispose]();
  });

  /** The calling process has the pod's namespace open. */
  const call = (command: "ADD" | "DEL", pod: Pod, netns: string) =>
    site.call(
      command,
      { ...pod, netns },
      {
        under: ["sh", "-c", `exec ${DESCRIPTOR}<${pod.netns}; exec "$0"`],
      },
    );

  for (const netns of [
    `/proc/self/fd/${DESCRIPTOR}`,
    `/proc/thread-self/fd/${DESCRIPTOR}`,
    `/dev/fd/${DESCRIPTOR}`,
    `//proc/./self/fd/${DESCRIPTOR}`,
    `/run/netns/../../proc/self/fd/${DESCRIPTOR}`,
    `/run/vt-self/${DESCRIPTOR}`,
    "/run/vt-file",
    "/run/netns/vt-link",
  ]) {
    test(`${netns} is that of the calling process`, async () => {
      const pod = await site.makePod();
      const served = agent.served().length;
      const added = await call("ADD", pod, netns);

      expect(added).toMatchObject({ code: 0, stderr: NOTHING_UNUSUAL });
      const [address = ""] = JSON.parse(added.stdout).ips.map((ip: { address: string }) => ip.address);
      expect(await site.inside(pod, ["ip", "addr", "show", "eth0"])).toContain(address);
      expect(await call("DEL", pod, netns)).toEqual({ code: 0, stdout: "", stderr: NOTHING_UNUSUAL });
      expect(await site.left()).toEqual([]);
      expect(agent.served()).toHaveLength(served);
    });
  }

  test("that names the same file in every process, also through a link, is resolved by the agent", async () => {
    const pod = await site.makePod();
    await site.host.must(["ln", "-s", pod.netns, "/run/vt-pod"]);
    const served = agent.served().length;
    for (const netns of [pod.netns, "/run/vt-pod"]) {
      await site.add({ ...pod, netns });
      await site.quietly("DEL", { ...pod, netns });
    }
    expect(await agent.hasServed(served + 4)).toHaveLength(served + 4);
    expect(await site.left()).toEqual([]);
  });
});
