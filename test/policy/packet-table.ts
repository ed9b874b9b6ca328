/**
 * Every rule of Kubernetes' NetworkPolicy semantics as packets, with the outcome that a person expects. A row:
 *
 *   FROM -> TO PROTOCOL [PORT,PORT…] [v4|v6]  allow|deny       ends: pods `x/a`, the node `host`, and `outside` the cluster
 *
 * Without an IP version it is a row for both. Policies are those of Kubernetes, converted by the product.
 */
import {
  ALL,
  egress,
  expressions,
  ingress,
  ipBlock,
  kubernetesPolicy,
  labels,
  named,
  namespacePeer,
  podPeer,
  ports,
} from "./kubernetes-policies.ts";
import type { Labels, WrittenPolicy } from "./policy-site.ts";

export interface Scenario {
  readonly title: string;
  readonly policies: readonly WrittenPolicy[];
  readonly podLabels?: Readonly<Record<string, Labels>>;
  readonly namespaceLabels?: Readonly<Record<string, Labels>>;
  readonly rows: string;
}

const POD_CIDRS = ["10.50.0.0/16", "fd50::/64"];

export const SCENARIOS: readonly Scenario[] = [
  {
    title: "no policy: everything passes",
    policies: [],
    rows: `
      x/a -> x/b tcp 80,81 allow
      x/a -> y/a udp 80 allow
      outside -> x/a tcp 80 allow
      x/a -> outside udp 80 allow
      x/a -> host tcp 80 allow
      host -> x/a tcp 80 allow
      x/a -> y/b icmp allow
      x/a -> y/a sctp 80 allow`,
  },
  {
    title: "default deny of ingress isolates all pods of the namespace, and no others",
    policies: [ingress("x", ALL)],
    rows: `
      x/a -> x/b tcp 80 deny
      x/a -> x/b udp 80 deny
      y/a -> x/a tcp 80 deny
      outside -> x/a tcp 80 deny
      outside -> x/a icmp deny
      y/a -> x/a sctp 80 deny
      host -> x/a tcp 80 allow
      host -> x/b icmp allow
      x/a -> y/a tcp 80 allow
      x/a -> y/a udp 80 allow
      x/a -> outside tcp 80 allow
      x/a -> host udp 80 allow
      x/a -> x/a tcp 80 allow
      y/a -> y/b tcp 80 allow`,
  },
  {
    title: "default deny of egress: nothing leaves, but replies and probes pass",
    policies: [egress("x", ALL)],
    rows: `
      x/a -> x/b tcp 80 deny
      x/a -> y/a udp 80 deny
      x/a -> outside tcp 80 deny
      x/a -> host tcp 80 deny
      x/a -> y/a icmp deny
      x/a -> y/a sctp 80 deny
      x/a -> x/a udp 80 allow
      y/a -> x/a tcp 80 allow
      y/a -> x/a udp 80 allow
      y/a -> x/a icmp allow
      outside -> x/b tcp 80 allow
      host -> x/a tcp 80 allow
      host -> x/a udp 80 allow`,
  },
  {
    title: "default deny of both directions",
    policies: [ingress("x", ALL), egress("x", ALL)],
    rows: `
      x/a -> x/b tcp 80 deny
      x/a -> y/a tcp 80 deny
      y/a -> x/a udp 80 deny
      x/a -> host icmp deny
      outside -> x/a tcp 80 deny
      x/b -> outside udp 80 deny
      host -> x/a tcp 80 allow
      host -> x/a icmp allow
      x/a -> x/a tcp 80 allow`,
  },
  {
    title: "one empty rule allows everything in its direction",
    policies: [
      ingress("x", ALL),
      egress("x", ALL),
      ingress("x", labels("pod", "a"), {}),
      egress("x", labels("pod", "a"), {}),
    ],
    rows: `
      y/a -> x/a tcp 80,81 allow
      outside -> x/a udp 80 allow
      y/a -> x/a icmp allow
      y/a -> x/a sctp 81 allow
      x/a -> outside tcp 81 allow
      x/a -> host tcp 80 allow
      y/a -> x/b tcp 80 deny
      x/b -> x/a tcp 80 deny
      x/a -> x/b tcp 80 deny`,
  },
  {
    title: "a pod peer selects pods of the policy's namespace only",
    policies: [ingress("x", labels("pod", "b"), { from: [podPeer(labels("pod", "a"))] })],
    rows: `
      x/a -> x/b tcp 80 allow
      x/a -> x/b udp 81 allow
      x/a -> x/b icmp allow
      y/a -> x/b tcp 80 deny
      x/c -> x/b tcp 80 deny
      outside -> x/b tcp 80 deny
      y/a -> x/a tcp 80 allow`,
  },
  {
    title: "a namespace peer selects all pods of the namespaces with these labels",
    policies: [ingress("x", labels("pod", "b"), { from: [namespacePeer(labels("ns", "y"))] })],
    rows: `
      y/a -> x/b tcp 80 allow
      y/b -> x/b udp 80 allow
      x/a -> x/b tcp 80 deny
      z/a -> x/b tcp 80 deny
      outside -> x/b tcp 80 deny`,
  },
  {
    title: "an empty namespace selector selects every namespace, but nothing outside the cluster",
    policies: [ingress("x", labels("pod", "b"), { from: [namespacePeer(ALL)] })],
    rows: `
      x/a -> x/b tcp 80 allow
      y/a -> x/b udp 80 allow
      z/a -> x/b tcp 80 allow
      outside -> x/b tcp 80 deny
      outside -> x/b udp 80 deny`,
  },
  {
    title: "a peer with namespace and pod selector needs both",
    policies: [ingress("x", labels("pod", "b"), { from: [namespacePeer(labels("ns", "y"), labels("pod", "a"))] })],
    rows: `
      y/a -> x/b tcp 80 allow
      y/b -> x/b tcp 80 deny
      x/a -> x/b tcp 80 deny
      z/a -> x/b tcp 80 deny`,
  },
  {
    title: "two peers: either is enough",
    policies: [
      ingress(
        "x",
        labels("pod", "b"),
        { from: [namespacePeer(labels("ns", "y"))] },
        { from: [podPeer(labels("pod", "a"))] },
      ),
    ],
    rows: `
      y/a -> x/b tcp 80 allow
      y/b -> x/b tcp 80 allow
      x/a -> x/b tcp 80 allow
      x/c -> x/b tcp 80 deny
      z/a -> x/b tcp 80 deny`,
  },
  {
    title: "match expressions: in, not in, exists, does not exist",
    policies: [
      ingress("x", expressions({ key: "pod", operator: "In", values: ["b", "c"] }), {
        from: [
          namespacePeer(
            expressions({ key: "ns", operator: "NotIn", values: ["z"] }),
            expressions({ key: "app", operator: "Exists" }, { key: "blocked", operator: "DoesNotExist" }),
          ),
        ],
      }),
    ],
    podLabels: {
      "x/a": { pod: "a", app: "1" },
      "y/a": { pod: "a", app: "2", blocked: "yes" },
      "y/b": { pod: "b" },
      "z/a": { pod: "a", app: "3" },
    },
    rows: `
      x/a -> x/b tcp 80 allow
      x/a -> x/c udp 80 allow
      y/a -> x/b tcp 80 deny
      y/b -> x/b tcp 80 deny
      z/a -> x/b tcp 80 deny
      z/a -> x/a tcp 80 allow`,
  },
  {
    title: "ipBlock of an address outside, as source and as destination",
    policies: [
      ingress("x", labels("pod", "b"), { from: [ipBlock("198.51.100.0/24"), ipBlock("2001:db8:1::/64")] }),
      egress("x", labels("pod", "a"), { to: [ipBlock("198.51.100.2/32"), ipBlock("2001:db8:1::2/128")] }),
    ],
    rows: `
      outside -> x/b tcp 80 allow
      outside -> x/b udp 80 allow
      y/a -> x/b tcp 80 deny
      x/a -> outside tcp 80 allow
      x/a -> outside icmp allow
      x/a -> y/a tcp 80 deny
      x/a -> host tcp 80 deny`,
  },
  {
    title: "ipBlock with except, which also matches pods by their addresses",
    policies: [
      ingress(
        "x",
        labels("pod", "b"),
        { from: [ipBlock("0.0.0.0/0", "198.51.100.0/28")] },
        { from: [ipBlock("::/0", "2001:db8:1::/112")] },
      ),
      egress("x", labels("pod", "a"), { to: POD_CIDRS.map((cidr) => ipBlock(cidr)) }),
    ],
    rows: `
      outside -> x/b tcp 80 deny
      outside -> x/b udp 80 deny
      y/a -> x/b tcp 80 allow
      x/a -> x/b tcp 80 allow
      x/a -> y/a udp 80 allow
      x/a -> outside tcp 80 deny
      x/a -> host tcp 80 deny`,
  },
  {
    title: "ipBlock of one family allows nothing of the other",
    policies: [ingress("x", labels("pod", "b"), { from: [ipBlock("198.51.100.0/24")] })],
    rows: `
      outside -> x/b tcp 80 v4 allow
      outside -> x/b tcp 80 v6 deny`,
  },
  {
    title: "a numeric port, TCP only",
    policies: [ingress("x", labels("pod", "b"), { ports: ports("TCP", 80) })],
    rows: `
      x/a -> x/b tcp 80 allow
      outside -> x/b tcp 80 allow
      x/a -> x/b tcp 81 deny
      x/a -> x/b udp 80 deny
      x/a -> x/b icmp deny
      x/a -> x/b sctp 80 deny`,
  },
  {
    title: "a range of ports",
    policies: [ingress("x", labels("pod", "b"), { ports: ports("TCP", [81, 82]) }, { ports: ports("UDP", [79, 80]) })],
    rows: `
      x/a -> x/b tcp 80 deny
      x/a -> x/b tcp 81 allow
      x/a -> x/b tcp 82 allow
      x/a -> x/b tcp 83 deny
      x/a -> x/b udp 80 allow
      x/a -> x/b udp 81 deny`,
  },
  {
    title: "a protocol without a port is every port of it",
    policies: [ingress("x", labels("pod", "b"), { ports: ports("UDP") })],
    rows: `
      x/a -> x/b udp 80,81,83 allow
      x/a -> x/b tcp 80 deny
      x/a -> x/b icmp deny`,
  },
  {
    title: "a named port is the port of each pod that declares it, with its protocol",
    policies: [ingress("x", ALL, { ports: ports("TCP", "web") }, { ports: ports("UDP", "web") })],
    rows: `
      y/a -> x/a tcp 80 allow
      y/a -> x/a tcp 81 deny
      y/a -> x/b tcp 81 allow
      y/a -> x/b tcp 80 deny
      y/a -> x/c tcp 80,81 deny
      y/a -> x/a udp 80,81 deny
      y/a -> x/b udp 80,81 deny
      y/a -> x/c udp 82 allow`,
  },
  {
    title: "a named port of an egress rule is that of the destination",
    policies: [egress("y", labels("pod", "a"), { to: [namespacePeer(labels("ns", "x"))], ports: ports("TCP", "web") })],
    rows: `
      y/a -> x/a tcp 80 allow
      y/a -> x/a tcp 81 deny
      y/a -> x/b tcp 81 allow
      y/a -> x/b tcp 80 deny
      y/a -> outside tcp 80 deny
      y/b -> x/a tcp 81 allow`,
  },
  {
    title: "peers and ports of one rule: both must match; of two rules: either",
    policies: [
      ingress(
        "x",
        labels("pod", "b"),
        { from: [podPeer(labels("pod", "a"))], ports: ports("TCP", 80) },
        { from: [namespacePeer(labels("ns", "y"))], ports: ports("UDP", 81) },
      ),
    ],
    rows: `
      x/a -> x/b tcp 80 allow
      x/a -> x/b tcp 81 deny
      x/a -> x/b udp 81 deny
      y/a -> x/b udp 81 allow
      y/a -> x/b udp 80 deny
      y/a -> x/b tcp 80 deny`,
  },
  {
    title: "SCTP: a port, and no other protocol",
    policies: [ingress("x", labels("pod", "b"), { from: [podPeer(labels("pod", "a"))], ports: ports("SCTP", 80) })],
    rows: `
      x/a -> x/b sctp 80 allow
      x/a -> x/b sctp 81 deny
      x/c -> x/b sctp 80 deny
      x/a -> x/b tcp 80 deny
      x/a -> x/b udp 80 deny`,
  },
  {
    title: "both sides must allow: egress of the source, ingress of the destination",
    policies: [
      egress("x", labels("pod", "a"), { to: [namespacePeer(labels("ns", "y"))] }),
      ingress("y", labels("pod", "b"), { from: [namespacePeer(labels("ns", "z"))] }),
      ingress("y", labels("pod", "a"), { from: [namespacePeer(labels("ns", "x"))], ports: ports("TCP", 80) }),
    ],
    rows: `
      x/a -> y/a tcp 80 allow
      x/a -> y/a tcp 81 deny
      x/a -> y/b tcp 80 deny
      z/a -> y/b tcp 80 allow
      x/a -> z/a tcp 80 deny
      x/b -> y/a tcp 80 allow
      x/b -> y/b tcp 80 deny`,
  },
  {
    title: "policies add up",
    policies: [
      ingress("x", ALL),
      ingress("x", labels("pod", "b"), { from: [podPeer(labels("pod", "a"))] }),
      named("third", ingress("x", labels("pod", "b"), { ports: ports("UDP", 80) })),
      named(
        "fourth",
        ingress("x", labels("pod", "b"), { from: [namespacePeer(labels("ns", "y"))], ports: ports("TCP", 81) }),
      ),
    ],
    rows: `
      x/a -> x/b tcp 80,81 allow
      x/c -> x/b udp 80 allow
      x/c -> x/b tcp 80 deny
      y/a -> x/b tcp 81 allow
      y/a -> x/b tcp 80 deny
      x/b -> x/c udp 80 deny`,
  },
  {
    title: "a policy that selects no pod, and one of another namespace, isolate nobody here",
    policies: [ingress("x", labels("pod", "nobody")), ingress("z", ALL)],
    rows: `
      x/a -> x/b tcp 80 allow
      y/a -> x/a udp 80 allow
      y/a -> z/a tcp 80 deny`,
  },
  {
    title: "a relabelled pod joins peers and leaves policies",
    policies: [ingress("x", labels("pod", "b"), { from: [podPeer(labels("role", "client"))] })],
    podLabels: { "x/c": { pod: "c", role: "client" } },
    rows: `
      x/c -> x/b tcp 80 allow
      x/a -> x/b tcp 80 deny`,
  },
  {
    title: "the same policy after the labels moved: the other pod is the client, and the former server is free",
    policies: [ingress("x", labels("pod", "b"), { from: [podPeer(labels("role", "client"))] })],
    podLabels: { "x/a": { pod: "a", role: "client" }, "x/b": { pod: "free" }, "x/c": { pod: "b" } },
    rows: `
      x/a -> x/c tcp 80 allow
      x/b -> x/c tcp 80 deny
      y/a -> x/c tcp 80 deny
      y/a -> x/b tcp 80 allow`,
  },
  {
    title: "a relabelled namespace: its pods leave and join peers",
    policies: [ingress("x", labels("pod", "b"), { from: [namespacePeer(labels("ns", "y"))] })],
    namespaceLabels: { y: { ns: "former" }, z: { ns: "y" } },
    rows: `
      z/a -> x/b tcp 80 allow
      y/a -> x/b tcp 80 deny
      y/b -> x/b udp 80 deny`,
  },
  {
    title: "a pod without labels is selected by an empty selector only",
    policies: [
      ingress("x", ALL),
      ingress("x", labels("pod", "b"), { from: [podPeer(expressions({ key: "pod", operator: "DoesNotExist" }))] }),
    ],
    podLabels: { "x/c": {} },
    rows: `
      x/a -> x/c tcp 80 deny
      x/c -> x/b tcp 80 allow
      x/a -> x/b tcp 80 deny`,
  },
  {
    title: "egress to the node: by ipBlock",
    policies: [
      egress("x", labels("pod", "a"), {
        to: [ipBlock("192.0.2.1/32"), ipBlock("2001:db8::1/128")],
        ports: ports("TCP", 80),
      }),
    ],
    rows: `
      x/a -> host tcp 80 allow
      x/a -> host tcp 81 deny
      x/a -> host udp 80 deny
      x/b -> host tcp 81 allow
      host -> x/a tcp 81 allow`,
  },
  {
    title: "without policyTypes a policy is for ingress; an empty list of peers or ports is everybody, every port",
    policies: [
      kubernetesPolicy("x", "untyped", { podSelector: labels("pod", "b"), ingress: [{ from: [], ports: [] }] }),
      kubernetesPolicy("x", "closed", { podSelector: labels("pod", "c") }),
    ],
    rows: `
      outside -> x/b tcp 80 allow
      x/b -> outside udp 80 allow
      y/a -> x/c tcp 80 deny
      x/c -> y/a tcp 80 allow`,
  },
];
