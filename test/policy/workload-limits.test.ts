/** What a pod cannot do while the host enforces policy, even if policy allows everything, and what always works. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
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
  let listeners: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    await policies.labelNamespace("x", {});
    sender = await policies.addPod("x/sender");
    receiver = await policies.addPod("x/receiver");
    const found = policies.ends.get("host");
    if (found === undefined) throw new Error("no host");
    host = found;
    listeners = [...(await serve(receiver, [PORT, VXLAN_PORT])), ...(await serve(host, [HOST_PORT]))];
  });
  afterAll(async () => {
    for (const each of listeners ?? []) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

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

  test("gets its link-local address and reaches its gateway by it, also under default deny", async () => {
    await apply(CLOSED);
    const fresh = await policies.addPod("x/fresh");
    await policies.untilApplied();
    const show = () => policies.site.inside(fresh.pod, ["ip", "-6", "address", "show", "dev", "eth0"]);
    await pollUntil(async () => {
      const text = await show();
      return text.includes("inet6 fe80:") && !text.includes("tentative");
    }, "duplicate address detection to end");
    expect(await show()).not.toContain("dadfailed");
    await policies.site.inside(fresh.pod, ["ip", "neigh", "flush", "all"]);
    expect(await tcp(host, fresh, PORT + 1, "deny")).toEqual([...DENIED]);
    const neighbours = await policies.site.inside(fresh.pod, ["ip", "neigh", "show", "dev", "eth0"]);
    expect(neighbours).toMatch(/fe80:\S+ lladdr/);
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
    await configure({ defaultEndpointToHostAction: "Accept" });
    expect(await tcp(sender, host, HOST_PORT, "allow")).toEqual([...ALLOWED]);
    await apply(CLOSED);
    expect(await tcp(sender, host, HOST_PORT, "deny")).toEqual([...DENIED]);
    expect(await tcp(host, receiver, PORT, "allow")).toEqual([...ALLOWED]);
  });

  test("is silent on an interface that the agent does not know", async () => {
    await apply(OPEN);
    await policies.agent.signal("STOP");
    const late = await policies.addPod("x/late");
    expect(await tcp(late, receiver, PORT, "deny")).toEqual([...DENIED]);
    await policies.agent.signal("CONT");
    await policies.untilApplied();
    expect(await tcp(late, receiver, PORT, "allow")).toEqual([...ALLOWED]);
  });
});
