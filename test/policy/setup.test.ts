/** ADD with `policy.type`: refused until the agent has set its rules, and it waits for those of the new pod. */
import { afterAll, afterEach, beforeAll, describe, expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { failureOf, type Json, openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";

const STORES = [
  { kind: "embedded", problem: undefined },
  { kind: "etcd", problem: hasEtcd ? undefined : "needs etcd" },
] as const;
const PORT = 8080;
const STATUS_DIRECTORY = "/run/vt/endpoint-status";

for (const { kind, problem } of STORES) {
  describe(`ADD with a policy type, on ${kind}`, () => {
    const needs = [hostProblem(), program("nft"), problem];
    const test = testNeeding(...needs);
    let site: PluginSite;
    let agent: Agent | undefined;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      site = await openPluginSite(kind);
      const { name, cniVersion, ...plugin } = config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    });
    afterAll(() => site?.[Symbol.asyncDispose]());
    afterEach(() => stopAgent());

    const config = (more: Json = {}) =>
      site.config({ policy: { type: "k8s" }, endpoint_status_dir: STATUS_DIRECTORY, ...more });
    const stopAgent = async () => {
      await agent?.signal("KILL");
      await agent?.ended;
      agent = undefined;
    };
    const table = async () => (await site.host.run(["nft", `list table inet ${identity.policyTable}`])).stdout;
    const enforce = async () => {
      agent = launchAgent(site.host);
      await pollUntil(async () => (await table()).includes("workloads_from"), "the agent to write its table");
    };
    const addressOf = async (pod: Pod, more?: Json) => {
      const { ips } = await site.add(pod, { config: config(more) });
      return ips[0]?.address.split("/")[0] ?? "";
    };
    const remove = (pod: Pod) => site.quietly("DEL", pod, { config: config() });
    const statusFile = ({ containerId }: Pod) => site.host.view(`${STATUS_DIRECTORY}/cni ${containerId} eth0`);

    test("is refused until the agent, started last, has set its rules; after a reboot again", async () => {
      const pod = await site.makePod();
      const refused = async () => failureOf(await site.call("ADD", pod, { config: config() }));
      const later = { code: 11, msg: expect.stringContaining("has not set its rules yet") };
      expect(await refused()).toMatchObject(later);
      expect(await site.left()).toEqual([]);
      await enforce();
      await site.add(pod, { config: config() });
      await remove(pod);
      await stopAgent();

      // A reboot leaves no rules in the kernel, and the agent starts later than the runtime.
      await site.host.must(["nft", "flush ruleset"]);
      expect(await refused()).toMatchObject(later);
      expect(await site.left()).toEqual([]);
      await enforce();
      await site.add(pod, { config: config() });
      await remove(pod);
    });

    test("waits for the rules of the new pod: it reaches its first allowed peer at once", async () => {
      await enforce();
      const server = await site.makePod();
      const target = await addressOf(server, { policy_setup_timeout_seconds: 20 });
      using _listener = serveTcp(site.host.view(server.netns), "server", PORT);
      const key = resourceKey("networkpolicies", { namespace: "default", name: "ports" });
      const policy = networkPolicy.make(
        { name: "ports", namespace: "default" },
        { tier: "default", ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [PORT] } }] },
      );
      await site.store.put([{ kind: "put", key, value: networkPolicy.write(policy) }]);
      for (const _name of ["first", "second", "third"]) {
        const pod = await site.makePod();
        await addressOf(pod, { policy_setup_timeout_seconds: 20 });
        // A lost first packet is repeated after a second, which is silence here.
        expect(await askTcp(site.host.view(pod.netns), target, PORT)).toStartWith("server ");
        expect(JSON.parse(readFileSync(statusFile(pod), "utf8"))).toMatchObject({ containerID: pod.containerId });
        await remove(pod);
        await pollUntil(() => !existsSync(statusFile(pod)), "the agent to remove the status");
      }
      await site.store.remove(key);
      await remove(server);
      await pollUntil(() => readdirSync(site.host.view(STATUS_DIRECTORY)).length === 0, "no status to be left");
    });

    test("succeeds with a warning at the time-out, and a file of an earlier sandbox does not count", async () => {
      await enforce();
      await stopAgent();
      // A pod, since only its name outlives a sandbox; a policy type would need access to the orchestrator's API.
      const pod = await site.makePod({ args: "IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=stale" });
      const ofPod = (seconds: number) => ({
        config: site.config({ endpoint_status_dir: STATUS_DIRECTORY, policy_setup_timeout_seconds: seconds }),
      });
      const file = `${STATUS_DIRECTORY}/k8s shop%2Fstale eth0`;
      site.host.writeFile(file, '{"containerID":"earlier"}');
      const { code, stderr } = await site.call("ADD", pod, ofPod(1));
      expect([code, stderr]).toEqual([0, expect.stringMatching(/\[WARNING\].*not set within 1 s/)]);

      site.host.writeFile(file, JSON.stringify({ containerID: pod.containerId }));
      expect((await site.call("ADD", pod, ofPod(1))).stderr).not.toContain("[WARNING]");
      expect((await site.call("ADD", pod, ofPod(0))).stderr).not.toContain("[WARNING]");
      await remove(pod);
      await enforce();
      await pollUntil(
        () => !existsSync(site.host.view(file)),
        "the next agent to remove the status of a pod that is gone",
      );
    });
  });
}
