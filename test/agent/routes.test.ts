/** The node agent keeps the routes to the pods of its host: lost and changed ones return, stale ones go, others stay. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { resourcesPrefix } from "../../src/model/keys.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { testNeeding } from "../support/needs.ts";
import { type CallOptions, openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { type Agent, startAgent } from "./agent.ts";

const STORES = [
  { kind: "embedded", problem: undefined },
  { kind: "etcd", problem: hasEtcd ? undefined : "needs etcd" },
] as const;
const PORT = 80;
/** Usually it takes 0.6 seconds. */
const SOON = 5_000;
const OWN = "proto 86";

/** A link of somebody else, with routes as they could be ours. */
const FOREIGN = `
ip link add other type veth peer name other-peer
ip link set other up
ip link set other-peer up
ip route add 198.51.100.7 dev other ${OWN}
ip route add 10.50.255.7 dev other
ip -6 route add fd50::ff:7 dev other ${OWN}
`;

for (const { kind, problem } of STORES) {
  describe(`routes of the pods of a host, on ${kind},`, () => {
    const needs = [hostProblem(), problem];
    const test = testNeeding(...needs);
    let site: PluginSite;
    let agent: Agent;
    let foreign: string;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      site = await openPluginSite(kind);
      const { name, cniVersion, ...plugin } = site.config();
      site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
      await run(FOREIGN);
      foreign = await foreignRoutes();
      // The agent opens only an embedded datastore that exists.
      await remove(await attach());
      agent = await startAgent(site.host);
    });
    afterAll(() => site?.[Symbol.asyncDispose]());

    const attach = async (options?: CallOptions) => {
      const pod = await site.makePod();
      const { ips, interfaces } = await site.add(pod, options);
      const [ipv4 = "", ipv6 = ""] = ips.map(({ address }) => address.split("/")[0]);
      return { pod, ipv4, ipv6, link: interfaces[0]?.name ?? "", netns: site.host.view(pod.netns), options };
    };
    type Attached = Awaited<ReturnType<typeof attach>>;
    const remove = ({ pod, options }: Attached) => site.quietly("DEL", pod, options);
    const run = (script: string) => site.host.must(["sh", "-ec", script]);
    const foreignRoutes = () => run("ip route show dev other; ip -6 route show dev other | grep -v fe80");
    const routes = (address: string) => run(`ip -${address.includes(":") ? 6 : 4} route show ${address}`);
    const isRouted = async ({ ipv4, ipv6, link }: Attached) => {
      const found = [await routes(ipv4), await routes(ipv6)];
      return found.every((text) => text.includes(`dev ${link} ${OWN}`));
    };
    const untilRouted = (attached: Attached, reason: string) =>
      pollUntil(() => isRouted(attached), `the routes after: ${reason}`, SOON);
    const untilUnrouted = (address: string) =>
      pollUntil(async () => (await routes(address)) === "", `no route to ${address}`, SOON);
    const recordOf = async ({ pod }: Attached) => {
      const all = [...(await site.store.list())].filter(([key]) =>
        key.startsWith(resourcesPrefix("workloadendpoints")),
      );
      const [key = "", value = "{}"] = all.find(([, text]) => text.includes(pod.containerId)) ?? [];
      return { key, value };
    };

    test("return if they were deleted or changed", async () => {
      const [pod, other] = [await attach(), await attach()];
      const { ipv4, ipv6, link } = pod;
      const damages = [
        `ip route del ${ipv4}; ip route del ${ipv6}`,
        `ip route replace ${ipv4} dev ${other.link}; ip route replace ${ipv6} dev ${other.link}`,
        `ip route replace ${ipv4} dev other; ip route replace ${ipv6} dev other`,
        `ip route replace blackhole ${ipv4}; ip route del ${ipv6}; ip route add blackhole ${ipv6}`,
        `ip link set ${link} down; ip link set ${link} up`,
      ];
      for (const damage of kind === "embedded" ? damages : damages.slice(0, 1)) {
        await run(damage);
        await untilRouted(pod, damage);
      }
      using _server = serveTcp(pod.netns, "pod", PORT);
      for (const address of [ipv4, ipv6]) {
        await pollUntil(async () => (await askTcp(site.host.netns, address, PORT)).startsWith("pod "), address);
      }
      expect([await isRouted(other), await foreignRoutes()]).toEqual([true, foreign]);
      for (const each of [pod, other]) await remove(each);
    });

    test("follow the addresses of the endpoint; routes that are not ours stay", async () => {
      const pod = await attach();
      const { key, value } = await recordOf(pod);
      const byHand = "10.50.77.1";
      await run(`ip route add ${byHand} dev ${pod.link}`);
      await run(`ip route add 10.50.77.2 dev ${pod.link} ${OWN}`);
      await untilUnrouted("10.50.77.2");
      const record = JSON.parse(value);
      const spec = { ...record.spec, ipNetworks: [`${pod.ipv6}/128`] };
      await site.store.put([{ kind: "put", key, value: JSON.stringify({ ...record, spec }) }]);
      await untilUnrouted(pod.ipv4);
      await site.store.put([{ kind: "put", key, value }]);
      await untilRouted(pod, "the address was recorded again");
      expect(await routes(byHand)).toContain(pod.link);
      expect(await foreignRoutes()).toBe(foreign);
      await remove(pod);
    });

    test("stay while the container runs, although no endpoint is recorded", async () => {
      const [pod, sentinel] = [await attach(), await attach()];
      await site.store.remove((await recordOf(pod)).key);
      // Twice: all looks that the deletion has led to are over then.
      for (const byHand of ["10.50.77.3", "10.50.77.4"]) {
        await run(`ip route add ${byHand} dev ${sentinel.link} ${OWN}`);
        await untilUnrouted(byHand);
      }
      expect(await isRouted(pod)).toBe(true);
      for (const each of [pod, sentinel]) await remove(each);
    });

    if (kind !== "embedded") return;

    test("that another program took are left to it, and named, until it gives them back", async () => {
      const pod = await attach();
      await run(`ip route replace ${pod.ipv4} dev other proto bird`);
      const clash = `to ${pod.ipv4}/32 on interface "${pod.link}": another program has one (unicast on interface "other", protocol 12)`;
      await pollUntil(() => agent.log().includes(clash), "a warning", SOON);
      expect(await routes(pod.ipv4)).toContain("dev other proto bird");
      await run(`ip route del ${pod.ipv4} dev other`);
      await untilRouted(pod, "the other program removed its route");
      await remove(pod);
    });

    test("return when the agent starts, if they were lost meanwhile", async () => {
      const pod = await attach();
      await agent.signal("TERM");
      await agent.ended;
      await run(`ip route del ${pod.ipv4}; ip route del ${pod.ipv6}`);
      agent = await startAgent(site.host);
      await untilRouted(pod, "a restart");
      await remove(pod);
    });

    test("are not touched while pods come and go", async () => {
      const start = agent.log().length;
      const churn = async () => {
        for (let round = 0; round < 3; round++) {
          const pod = await attach();
          // A repeated ADD, and one of the next sandbox.
          await site.add(pod.pod);
          if (!(await isRouted(pod))) throw new Error("an ADD without routes");
          await remove(pod);
        }
        return attach();
      };
      const last = await Promise.all(Array.from({ length: 6 }, churn));
      expect(await Promise.all(last.map(isRouted))).toEqual(last.map(() => true));
      const [sentinel] = last;
      await run(`ip route del ${sentinel?.ipv4}`);
      for (const each of last) await untilRouted(each, "the end of the storm");
      // All looks of the storm are over now: the only route that was ever corrected is the one that was deleted.
      const corrections =
        agent
          .log()
          .slice(start)
          .match(/(Restored|Removed|Cannot) .*rout.*/g) ?? [];
      expect(corrections).toEqual([`Restored routes of pods: ${sentinel?.ipv4}/32 on interface "${sentinel?.link}"`]);
      for (const each of last) await remove(each);
      expect(await foreignRoutes()).toBe(foreign);
    });
  });
}
