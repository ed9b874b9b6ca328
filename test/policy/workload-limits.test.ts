/** What a pod cannot do while the host enforces policy, even if policy allows everything, and what always works. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { formatAddress } from "../../src/ip/address.ts";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { gatewayOf } from "../../src/plugin/wiring-plan.ts";
import { untilLinkLocal } from "../support/connectivity.ts";
import { hostProblem } from "../support/host.ts";
import { hearUdp, openUdpClient } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { rawArrives } from "../support/raw-ip.ts";
import { type End, openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";
import { type Outcome, outcomeOf, serve } from "./probes.ts";

const PORT = 80;
const VXLAN_PORT = 4789;
const HOST_PORT = 8081;
const IPIP = 4;
/** For experiments: RFC 3692. */
const OTHER_PROTOCOL = 253;
const OPEN = {
  namespace: "x",
  name: "open",
  spec: {
    types: ["Ingress" as const, "Egress" as const],
    ingress: [{ action: "Allow" as const }],
    egress: [{ action: "Allow" as const }],
  },
};
const CLOSED = { namespace: "x", name: "closed", spec: { types: ["Ingress" as const, "Egress" as const] } };

const needs = [hostProblem(), program("nft"), program("ping")];
const test = testNeeding(...needs);

describe("a pod, while the host enforces policy,", () => {
  let policies: PolicySite;
  let sender: PodEnd;
  let receiver: PodEnd;
  let host: End;
  let outside: End;
  let listeners: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    await policies.labelNamespace("x", {});
    sender = await policies.addPod("x/sender");
    receiver = await policies.addPod("x/receiver");
    [host, outside] = [endNamed("host"), endNamed("outside")];
    listeners = [...(await serve(receiver, [PORT, VXLAN_PORT])), ...(await serve(host, [HOST_PORT]))];
  });
  afterAll(async () => {
    for (const each of listeners ?? []) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  const endNamed = (name: string): End => {
    const end = policies.ends.get(name);
    if (end === undefined) throw new Error(`no ${name}`);
    return end;
  };
  const apply = async (...list: Parameters<PolicySite["setPolicies"]>[0]) => {
    await policies.setPolicies(list);
    await policies.untilApplied();
  };
  const tcp = (from: End, to: End, port: number, expected: Outcome) =>
    Promise.all(
      ([4, 6] as const).map((family) =>
        outcomeOf({ from, to, protocol: "tcp", port, family }, expected, policies.site.host),
      ),
    );
  const udp = (port: number, expected: Outcome) =>
    outcomeOf({ from: sender, to: receiver, protocol: "udp", port, family: 4 }, expected, policies.site.host);
  const ALLOWED: readonly Outcome[] = ["allow", "allow"];
  const DENIED: readonly Outcome[] = ["deny", "deny"];

  test("sends from its own addresses only, although policy allows all", async () => {
    await apply(OPEN);
    const foreign = ["198.51.100.9", receiver.addresses[0], "fd99::9", receiver.addresses[1]];
    for (const address of foreign) {
      await policies.site.inside(sender.pod, ["ip", "address", "add", address, "dev", "lo", "nodad"]);
    }
    const neighbour = await policies.addPod("x/neighbour");
    await policies.untilApplied();
    using listener = await hearUdp(neighbour.netns, PORT);
    await Promise.all(
      [...sender.addresses, ...foreign].map(async (source) => {
        using client = await openUdpClient(sender.netns, source);
        await client.ask(neighbour.addresses[source.includes(":") ? 1 : 0], PORT);
      }),
    );
    expect([...listener.senders].sort()).toEqual([...sender.addresses].sort());
    for (const address of foreign) {
      const length = address.includes(":") ? 128 : 32;
      await policies.site.inside(sender.pod, ["ip", "address", "delete", `${address}/${length}`, "dev", "lo"]);
    }
  });

  test("cannot wrap packets in VXLAN or IPIP, in which no policy would see them", async () => {
    await apply(OPEN);
    const wrapped = { from: sender.netns, to: receiver.netns, target: receiver.addresses[0] };
    expect([await udp(PORT, "allow"), await udp(VXLAN_PORT, "deny")]).toEqual(["allow", "deny"]);
    expect(await rawArrives({ ...wrapped, protocol: OTHER_PROTOCOL, patience: 3_000 })).toBe(true);
    expect(await rawArrives({ ...wrapped, protocol: IPIP, patience: 500 })).toBe(false);
  });

  test("cannot wrap packets in a connection that the other side has opened", async () => {
    await apply(OPEN);
    using servers = new DisposableStack();
    for (const server of await serve(sender, [PORT])) servers.use(server);
    await Promise.all(
      ([0, 1] as const).map(async (index) => {
        const [pod, other] = [sender.addresses[index], outside.addresses[index]];
        const reply = async (fromPort: number) => {
          using client = await openUdpClient(outside.netns, other, 300, fromPort);
          return await client.ask(pod, PORT);
        };
        expect(await reply(VXLAN_PORT + 1)).toStartWith(`${sender.name} `);
        expect(await reply(VXLAN_PORT)).toBe("silence");
        for (const [protocol, isAllowed] of [
          [OTHER_PROTOCOL, true],
          [IPIP, false],
        ] as const) {
          const [there, back] = [
            { from: outside.netns, to: sender.netns, target: pod, protocol },
            { from: sender.netns, to: outside.netns, target: other, protocol },
          ];
          expect(await rawArrives({ ...there, patience: 3_000 })).toBe(true);
          expect(await rawArrives({ ...back, patience: isAllowed ? 3_000 : 300 })).toBe(isAllowed);
        }
      }),
    );
  });

  test("gets its link-local address under default deny, and sends from it to its gateway what policy allows", async () => {
    await apply(CLOSED);
    const fresh = await policies.addPod("x/fresh");
    await policies.untilApplied();
    const show = () => policies.site.inside(fresh.pod, ["ip", "-6", "address", "show", "dev", "eth0"]);
    await untilLinkLocal((command) => policies.site.inside(fresh.pod, command), "eth0");
    expect(await show()).not.toContain("dadfailed");
    await policies.site.inside(fresh.pod, ["ip", "neigh", "flush", "all"]);
    expect(await tcp(host, fresh, PORT + 1, "deny")).toEqual([...DENIED]);
    const neighbours = await policies.site.inside(fresh.pod, ["ip", "neigh", "show", "dev", "eth0"]);
    expect(neighbours).toMatch(/fe80:\S+ lladdr/);
    const gateway = formatAddress(gatewayOf(6));
    const ping = ["nsenter", `--net=${fresh.pod.netns}`, "ping", "-c", "1", "-W", "0.3", `${gateway}%eth0`];
    const pings = async () => (await policies.site.host.run(ping)).code === 0;
    expect(await pings()).toBe(false);
    await apply(OPEN);
    await pollUntil(pings, "a reply to the link-local address");
  });

  test("reaches its host as defaultEndpointToHostAction says, after its own policy; the host always reaches it", async () => {
    const configure = async (spec: NodeAgentConfigurationSpec) => {
      const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
      await policies.store.commit([{ kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value }]);
      await policies.untilApplied();
    };
    await apply(OPEN);
    expect(await tcp(sender, host, HOST_PORT, "allow")).toEqual([...ALLOWED]);
    await configure({ defaultEndpointToHostAction: "Drop" });
    expect(await tcp(sender, host, HOST_PORT, "deny")).toEqual([...DENIED]);
    // Replies to the host pass.
    expect(await tcp(host, receiver, PORT, "allow")).toEqual([...ALLOWED]);
    expect(await tcp(sender, receiver, PORT, "allow")).toEqual([...ALLOWED]);
    await configure({ defaultEndpointToHostAction: "Return" });
    expect(await tcp(sender, host, HOST_PORT, "allow")).toEqual([...ALLOWED]);
    await configure({ defaultEndpointToHostAction: "Drop" });
    expect(await tcp(sender, host, HOST_PORT, "deny")).toEqual([...DENIED]);
    await configure({ defaultEndpointToHostAction: "Accept" });
    expect(await tcp(sender, host, HOST_PORT, "allow")).toEqual([...ALLOWED]);
    await apply(CLOSED);
    expect(await tcp(sender, host, HOST_PORT, "deny")).toEqual([...DENIED]);
    expect(await tcp(host, receiver, PORT, "allow")).toEqual([...ALLOWED]);
  });

  test("neither sends nor receives on an interface that the agent does not know", async () => {
    await apply(OPEN);
    await policies.agent.signal("STOP");
    const late = await policies.addPod("x/late");
    using servers = new DisposableStack();
    for (const server of await serve(late, [PORT])) servers.use(server);
    expect(await tcp(late, receiver, PORT, "deny")).toEqual([...DENIED]);
    expect(await tcp(late, host, HOST_PORT, "deny")).toEqual([...DENIED]);
    expect(await tcp(outside, late, PORT, "deny")).toEqual([...DENIED]);
    await policies.agent.signal("CONT");
    await policies.untilApplied();
    expect(await tcp(late, receiver, PORT, "allow")).toEqual([...ALLOWED]);
    expect(await tcp(outside, late, PORT, "allow")).toEqual([...ALLOWED]);
  });
});
