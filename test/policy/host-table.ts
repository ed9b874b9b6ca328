/**
 * What host endpoints and their policies do to packets, as a person expects it (see packet-rows.ts for the notation).
 * `out0` leads to `outside`, `side0` to `side`.
 */
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { profile } from "../../src/model/profile.ts";
import { HOST_NODE, type HostResources } from "./host-site.ts";

export interface HostScenario extends HostResources {
  readonly title: string;
  readonly rows: string;
}

const host = (name: string, spec: object) =>
  hostEndpoint.make({ name, labels: { host: name } }, { node: HOST_NODE, ...spec });
const OUT0 = host("out0", { interfaceName: "out0" });
const ALL = host("all", { interfaceName: "*" });
/** Selects the host endpoint of that name, or all. */
const policy = (name: string, spec: object, of?: string) =>
  globalNetworkPolicy.make(
    { name },
    {
      ...{ tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: false },
      ...{ selector: of === undefined ? "has(host)" : `host == '${of}'`, ...spec },
    },
  );
const rule = (action: "Allow" | "Deny", protocol: string, ...ports: number[]) => ({
  action,
  protocol,
  ...(ports.length === 0 ? {} : { destination: { ports } }),
});
const EVERYTHING = { action: "Allow" as const };

export const HOST_SCENARIOS: readonly HostScenario[] = [
  {
    title: "no host endpoint: policies that select hosts do nothing",
    policies: [policy("deny", { types: ["Ingress", "Egress"], applyOnForward: true })],
    rows: `
      outside -> host tcp 80 allow
      host -> outside udp 80 allow
      outside -> side tcp 80 allow
      outside -> published tcp 8080 allow`,
  },
  {
    title: "a host endpoint without policies and profiles closes its interface except the failsafe ports",
    hostEndpoints: [OUT0],
    rows: `
      outside -> host tcp 80 deny
      outside -> host udp 80 deny
      outside -> host icmp deny
      outside -> host tcp 22,2379 allow
      outside -> host udp 68 allow
      outside -> host udp 22 deny
      host -> outside tcp 80,22 deny
      host -> outside icmp deny
      host -> outside udp 53 allow
      host -> outside tcp 2379 allow
      side -> host tcp 80 allow
      host -> side udp 80 allow
      host -> x/a tcp 80 allow
      x/a -> host tcp 80 allow
      outside -> x/a tcp 80 allow
      x/a -> outside tcp 80 allow
      outside -> side tcp 80 allow
      outside -> published tcp 8080 allow`,
  },
  {
    title: "the failsafe ports are those of NodeAgentConfiguration",
    hostEndpoints: [OUT0],
    configurations: [
      nodeAgentConfiguration.make(
        { name: `node.${HOST_NODE}` },
        { failsafeInboundHostPorts: [{ protocol: "UDP", port: 81 }], failsafeOutboundHostPorts: [] },
      ),
    ],
    rows: `
      outside -> host udp 81 allow
      outside -> host tcp 81,22 deny
      host -> outside udp 53 deny
      host -> outside tcp 2379 deny`,
  },
  {
    title: "policies allow and deny connections of the host, the first matching rule decides",
    hostEndpoints: [OUT0],
    policies: [
      policy("first", { order: 1, ingress: [rule("Deny", "TCP", 81)], egress: [rule("Deny", "UDP", 81)] }),
      policy("second", {
        order: 2,
        ingress: [rule("Allow", "TCP", 80, 81), rule("Deny", "TCP", 22)],
        egress: [rule("Allow", "UDP"), rule("Allow", "ICMP"), rule("Allow", "ICMPv6")],
      }),
    ],
    rows: `
      outside -> host tcp 80 allow
      outside -> host tcp 81 deny
      outside -> host udp 80 deny
      outside -> host icmp deny
      outside -> host tcp 22 allow
      host -> outside udp 80 allow
      host -> outside udp 81 deny
      host -> outside icmp allow
      host -> outside tcp 80 deny
      side -> host tcp 81 allow
      outside -> x/a tcp 81 allow
      x/a -> outside udp 81 allow`,
  },
  {
    title: "a policy of one direction leaves the other to the profiles",
    hostEndpoints: [host("out0", { interfaceName: "out0", profiles: ["of-hosts"] })],
    profiles: [profile.make({ name: "of-hosts" }, { egress: [EVERYTHING], ingress: [rule("Allow", "TCP", 80)] })],
    policies: [policy("in", { types: ["Ingress"], ingress: [rule("Allow", "UDP", 80)] })],
    rows: `
      outside -> host udp 80 allow
      outside -> host tcp 80 deny
      host -> outside tcp 80 allow
      host -> outside icmp allow`,
  },
  {
    title: "without a policy the profiles decide",
    hostEndpoints: [host("out0", { interfaceName: "out0", profiles: ["of-hosts"] })],
    profiles: [profile.make({ name: "of-hosts" }, { egress: [EVERYTHING], ingress: [rule("Allow", "TCP", 80)] })],
    rows: `
      outside -> host tcp 80 allow
      outside -> host tcp 81 deny
      host -> outside udp 80 allow
      side -> host tcp 81 allow
      outside -> x/a tcp 81 allow`,
  },
  {
    title: '"*" is every interface except those of workloads and the loopback interface',
    hostEndpoints: [ALL],
    policies: [policy("in", { ingress: [rule("Allow", "TCP", 80)], egress: [rule("Allow", "TCP", 80)] })],
    rows: `
      outside -> host tcp 80 allow
      outside -> host tcp 81 deny
      side -> host tcp 80 allow
      side -> host udp 80 deny
      host -> outside tcp 80 allow
      host -> side tcp 81 deny
      host -> host tcp 81 allow
      x/a -> host tcp 81 allow
      host -> x/a udp 80 allow
      side -> x/a tcp 81 allow
      outside -> side tcp 81 allow`,
  },
  {
    title: 'a host endpoint that names its interface, or expects an address of it, comes before "*"',
    hostEndpoints: [ALL, OUT0, host("side", { expectedIPs: ["203.0.113.1", "2001:db8:2::1"] })],
    policies: [
      policy("out0", { ingress: [rule("Allow", "TCP", 80)] }, "out0"),
      policy("side", { ingress: [rule("Allow", "TCP", 81)] }, "side"),
      policy("all", { ingress: [EVERYTHING], egress: [EVERYTHING] }, "all"),
    ],
    rows: `
      outside -> host tcp 80 allow
      outside -> host tcp 81 deny
      side -> host tcp 80 deny
      side -> host tcp 81 allow
      host -> outside tcp 80 deny
      host -> side tcp 80 deny`,
  },
  {
    title: "a host endpoint without interface name has the interface with one of its expected addresses",
    hostEndpoints: [host("out", { expectedIPs: ["192.0.2.200", "198.51.100.1"] })],
    policies: [policy("in", { ingress: [rule("Allow", "TCP", 80)] })],
    rows: `
      outside -> host tcp 80 allow
      outside -> host tcp 81 deny
      host -> outside tcp 80 deny
      side -> host tcp 81 allow`,
  },
  {
    title: "applyOnForward policies also decide about what comes in through the interface for others",
    hostEndpoints: [OUT0],
    policies: [
      policy("in", { types: ["Ingress"], applyOnForward: true, ingress: [rule("Allow", "TCP", 80)] }),
      policy("host", { types: ["Ingress"], ingress: [rule("Allow", "TCP", 81)] }),
    ],
    rows: `
      outside -> host tcp 80,81 allow
      outside -> host udp 80 deny
      outside -> x/a tcp 80 allow
      outside -> x/a tcp 81,22 deny
      outside -> x/a icmp deny
      outside -> published tcp 8080 allow
      outside -> published udp 8080 deny
      outside -> side tcp 80 allow
      outside -> side tcp 81,22 deny
      side -> x/a tcp 81 allow
      side -> outside tcp 81 allow
      x/a -> outside tcp 81 allow`,
  },
  {
    title: "applyOnForward policies also decide about what others send through the interface",
    hostEndpoints: [OUT0],
    policies: [policy("out", { types: ["Egress"], applyOnForward: true, egress: [rule("Allow", "UDP", 80)] })],
    rows: `
      x/a -> outside udp 80 allow
      x/a -> outside tcp 80 deny
      x/a -> outside udp 53 deny
      side -> outside udp 80 allow
      side -> outside tcp 80 deny
      outside -> x/a tcp 80 allow
      outside -> side tcp 80 allow
      x/a -> side tcp 80 allow
      host -> outside udp 80,53 allow
      host -> outside tcp 80 deny`,
  },
  {
    title: "preDNAT policies see the port of the host that the client uses, and deny only what their rules deny",
    hostEndpoints: [host("out0", { interfaceName: "out0", profiles: ["open"] })],
    profiles: [profile.make({ name: "open" }, { ingress: [EVERYTHING], egress: [EVERYTHING] })],
    policies: [
      policy("pre", {
        preDNAT: true,
        applyOnForward: true,
        ingress: [rule("Deny", "TCP", 8080), rule("Deny", "TCP", 22)],
      }),
    ],
    rows: `
      outside -> published tcp 8080 deny
      outside -> published udp 8080 allow
      side -> published tcp 8080 allow
      outside -> x/a tcp 80 allow
      outside -> host tcp 80,22 allow
      outside -> side tcp 22 allow`,
  },
  {
    title: "what a preDNAT policy allows passes the interface, whatever its other policies say",
    hostEndpoints: [OUT0],
    policies: [
      policy("pre", { preDNAT: true, applyOnForward: true, ingress: [rule("Allow", "TCP", 8080, 81)] }),
      policy("closed", { types: ["Ingress"], applyOnForward: true }),
    ],
    rows: `
      outside -> published tcp 8080 allow
      outside -> published udp 8080 deny
      outside -> x/a tcp 80 deny
      outside -> x/a tcp 81 allow
      outside -> host tcp 81 allow
      outside -> host tcp 80 deny`,
  },
  {
    title: "what doNotTrack policies allow is not tracked: replies need rules of their own",
    hostEndpoints: [OUT0],
    policies: [
      policy("raw", {
        ...{ doNotTrack: true, applyOnForward: true },
        ingress: [rule("Allow", "UDP", 80, 81), rule("Deny", "TCP", 82), rule("Deny", "TCP", 22)],
        egress: [{ action: "Allow", protocol: "UDP", source: { ports: [80] } }, rule("Deny", "UDP", 53)],
      }),
      policy("normal", { ingress: [rule("Allow", "TCP")], egress: [rule("Allow", "TCP")] }),
    ],
    rows: `
      outside -> host udp 80 allow
      outside -> host udp 81 deny
      outside -> host udp 82 deny
      outside -> host tcp 81 allow
      outside -> host tcp 82 deny
      outside -> host tcp 22 allow
      host -> outside tcp 80 allow
      host -> outside udp 53 allow
      host -> outside udp 80 deny
      outside -> x/a tcp 82 deny
      outside -> x/a tcp 81 allow`,
  },
  {
    title: "doNotTrack policies of both directions let the host reach others without a connection",
    hostEndpoints: [ALL],
    policies: [
      policy("raw", {
        ...{ doNotTrack: true, applyOnForward: true },
        ingress: [{ action: "Allow", protocol: "UDP", source: { ports: [80] } }],
        egress: [rule("Allow", "UDP", 80, 81)],
      }),
    ],
    rows: `
      host -> outside udp 80 allow
      host -> side udp 80 allow
      host -> outside udp 81 deny
      outside -> host udp 80 deny`,
  },
];
