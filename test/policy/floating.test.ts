/**
 * Packets through floating IPs under policy: from the pod itself, from another pod of its node, from the node and from
 * outside. Policy sees the addresses of the pods: what allows a pod allows it through a floating IP too, and a packet of a
 * pod to itself leaves the pod, so both of its directions are judged.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { ALL, egress, ingress, labels, podPeer } from "./kubernetes-policies.ts";
import { type End, openPolicySite, type PolicySite, type WrittenPolicy } from "./policy-site.ts";
import { type Outcome, outcomeOf, serve } from "./probes.ts";

const PORT = 80;
const FLOATING: Readonly<Record<string, readonly [string, string]>> = {
  "x/a": ["203.0.113.80", "2001:db8:80::80"],
  "x/b": ["203.0.113.81", "2001:db8:80::81"],
};
const TO_A = labels("pod", "a");

/** FROM -> whose floating IP: each with TCP and UDP, IPv4 and IPv6. */
const SCENARIOS: readonly { readonly title: string; readonly policies: readonly WrittenPolicy[]; rows: string }[] = [
  {
    title: "without policy everybody reaches it, the pod itself too",
    policies: [],
    rows: `
      x/a -> x/a allow
      x/b -> x/a allow
      x/a -> x/b allow
      host -> x/a allow
      outside -> x/a allow`,
  },
  {
    title: "default deny of both directions closes it, but not for the node",
    policies: [ingress("x", ALL), egress("x", ALL)],
    rows: `
      x/a -> x/a deny
      x/b -> x/a deny
      host -> x/a allow
      outside -> x/a deny`,
  },
  {
    title: "a pod that ingress allows to itself reaches itself, others do not",
    policies: [ingress("x", ALL), ingress("x", TO_A, { from: [podPeer(TO_A)] })],
    rows: `
      x/a -> x/a allow
      x/b -> x/a deny
      x/a -> x/b deny
      outside -> x/a deny`,
  },
  {
    title: "a pod whose ingress allows only others does not reach itself",
    policies: [ingress("x", TO_A, { from: [podPeer(labels("pod", "b"))] })],
    rows: `
      x/a -> x/a deny
      x/b -> x/a allow
      x/a -> x/b allow`,
  },
  {
    title: "egress to a pod allows its floating IP, and no other",
    policies: [egress("x", ALL, { to: [podPeer(TO_A)] })],
    rows: `
      x/a -> x/a allow
      x/b -> x/a allow
      x/a -> x/b deny
      x/b -> x/b deny
      outside -> x/b allow`,
  },
];

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

describe("a floating IP under policy:", () => {
  let policies: PolicySite;
  let servers: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite();
    await policies.labelNamespace("x", {});
    const pods = [await policies.addPod("x/a", { pod: "a" }), await policies.addPod("x/b", { pod: "b" })];
    servers = (await Promise.all(pods.map((pod) => serve(pod, [PORT])))).flat();
    for (const pod of pods) await claim(pod);
    // The node itself sends nothing to an address without a route.
    await policies.site.host.must("ip route add 203.0.113.0/24 via 198.51.100.2".split(" "));
    await policies.site.host.must("ip -6 route add 2001:db8:80::/64 via 2001:db8:1::2".split(" "));
    const fromHost = (to: string) => reach({ from: endNamed("host"), to, expected: "allow" });
    for (const { name } of pods) {
      await pollUntil(async () => !(await fromHost(name)).includes("deny"), `the floating IPs of ${name}`);
    }
  });
  afterAll(async () => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  for (const { title, policies: wanted, rows } of SCENARIOS) {
    test(title, async () => {
      await policies.setPolicies(wanted);
      await policies.untilApplied();
      const lines = rows.split("\n").flatMap((line) => (line.trim() === "" ? [] : [line.trim()]));
      const seen = await Promise.all(
        lines.map(async (line) => {
          const [from = "", , to = "", expected = ""] = line.split(" ");
          const outcomes = await reach({ from: endNamed(from), to, expected: expected as Outcome });
          return `${from} -> ${to} ${[...new Set(outcomes)].join(", ")}`;
        }),
      );
      expect(seen).toEqual(lines);
    });
  }

  function endNamed(name: string): End {
    const end = policies.ends.get(name);
    if (end === undefined) throw new Error(`no ${name}`);
    return end;
  }

  async function claim({ name, addresses }: End): Promise<void> {
    const { answers } = await policies.store.read([{ kind: "prefix", prefix: ENDPOINT.prefix() }]);
    for (const { key, value } of answers.flat()) {
      const record = workloadEndpoint.read(value, key);
      if (`${record.metadata.namespace}/${record.spec.pod}` !== name) continue;
      const ipNATs = addresses.map((internalIP, index) => ({ internalIP, externalIP: FLOATING[name]?.[index] ?? "" }));
      const changed = workloadEndpoint.write({ ...record, spec: { ...record.spec, ipNATs } });
      await policies.store.commit([{ kind: "put", key, value: changed }]);
    }
  }

  /** With each protocol in each family. */
  function reach({ from, to, expected }: { from: End; to: string; expected: Outcome }): Promise<readonly Outcome[]> {
    const floating = { ...endNamed(to), addresses: FLOATING[to] ?? ["", ""] };
    const probes = (["tcp", "udp"] as const).flatMap((protocol) =>
      ([4, 6] as const).map((family) => ({ from, to: floating, protocol, port: PORT, family })),
    );
    return Promise.all(probes.map((probe) => outcomeOf(probe, expected, policies.site.host)));
  }
});
