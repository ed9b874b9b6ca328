/**
 * A Service is no way around a policy: what kube-proxy does to packets, by rules as its own, with backends that a hostile
 * tenant chose. Policy is judged by the backend and the real client, wherever the packet was sent to.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { egress, ingress, labels, podPeer } from "./kubernetes-policies.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";
import { serve } from "./probes.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const PORT = 80;
const NODE_ADDRESS = "192.0.2.1";
/** Ports of the Service address and of the node; each leads to another backend. */
const BACKENDS = { friend: 1001, secret: 1002, node: 1003, loopback: 1004, itself: 1005 } as const;
const CLUSTER_IP = "10.96.0.7";
const PATIENCE_MILLISECONDS = 400;

describe("a Service whose backends a hostile tenant chose", () => {
  let policies: PolicySite;
  let client: PodEnd;
  let evil: PodEnd;
  let listeners: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    for (const namespace of ["shop", "mallory"]) await policies.labelNamespace(namespace, {});
    client = await policies.addPod("shop/client", { app: "client" });
    const friend = await policies.addPod("shop/friend", { app: "friend" });
    const secret = await policies.addPod("shop/secret", { app: "secret" });
    evil = await policies.addPod("mallory/evil", { app: "friend" });
    const host = policies.ends.get("host");
    if (host === undefined) throw new Error("no host");
    listeners = (await Promise.all([friend, secret, evil, host].map((end) => serve(end, [PORT])))).flat();
    await policies.setPolicies([
      egress("shop", labels("app", "client"), { to: [podPeer(labels("app", "friend"))] }),
      ingress("shop", labels("app", "secret"), { from: [podPeer(labels("app", "friend"))] }),
    ]);
    await policies.untilApplied();
    await policies.site.host.must(["nft", "-f", "-"], {
      stdin: serviceRules({
        friend: friend.addresses[0],
        secret: secret.addresses[0],
        node: NODE_ADDRESS,
        loopback: "127.0.0.1",
        itself: evil.addresses[0],
      }),
    });
  });
  afterAll(async () => {
    for (const each of listeners ?? []) each[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  async function reached(from: PodEnd, address: string): Promise<Readonly<Record<string, string>>> {
    const asked = Object.entries(BACKENDS).map(async ([name, port]) => {
      const answer = await askTcpWithin(PATIENCE_MILLISECONDS, from.netns, address, port);
      return [name, answer.split(" ")[0] ?? ""] as const;
    });
    return Object.fromEntries(await Promise.all(asked));
  }

  for (const [kind, address] of [
    ["its address", CLUSTER_IP],
    ["a port of the node, where the client is masqueraded", NODE_ADDRESS],
  ] as const) {
    test(`takes a client no further than its own egress policy, by ${kind}`, async () => {
      expect(await reached(client, address)).toEqual({
        friend: "shop/friend",
        secret: "silence",
        node: "silence",
        loopback: "silence",
        itself: "silence",
      });
    });

    test(`takes a stranger to no pod whose ingress policy does not admit it, by ${kind}`, async () => {
      expect(await reached(evil, address)).toMatchObject({
        friend: "shop/friend",
        secret: "silence",
        loopback: "silence",
      });
    });
  }
});

/** As kube-proxy: destinations are translated before routing; clients of node ports, and a pod that reaches itself, are masqueraded. */
function serviceRules(backends: Readonly<Record<keyof typeof BACKENDS, string>>): string {
  const map = Object.entries(BACKENDS).map(([name, port]) => `${port} : ${backends[name as keyof typeof BACKENDS]}`);
  const translate = `dnat to tcp dport map { ${map.join(", ")} } : ${PORT}`;
  return `table ip services {
  chain prerouting {
    type nat hook prerouting priority dstnat;
    ip daddr ${CLUSTER_IP} tcp dport 1001-1005 ${translate}
    ip daddr ${NODE_ADDRESS} tcp dport 1001-1005 meta mark set meta mark or 0x4000 ${translate}
  }
  chain postrouting {
    type nat hook postrouting priority srcnat;
    meta mark and 0x4000 == 0x4000 masquerade
    ct status dnat ip saddr ${backends.itself} ip daddr ${backends.itself} masquerade
  }
}
`;
}
