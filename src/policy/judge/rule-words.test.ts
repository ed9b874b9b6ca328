import { describe, expect, test } from "bun:test";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { ruleWords } from "./rule-words.ts";

const ROWS: readonly (readonly [words: string, rule: PolicyRule, namespace?: string])[] = [
  ["allow everything", { action: "Allow" }],
  ["deny IPv6 everything", { action: "Deny", ipVersion: 6 }],
  ["pass to the next tier: UDP", { action: "Pass", protocol: 17 }],
  ["log every protocol except TCP", { action: "Log", notProtocol: "TCP" }],
  ["allow ICMP type 3 code 4", { action: "Allow", protocol: "ICMP", icmp: { type: 3, code: 4 } }],
  ["allow ICMPv6 except type 128", { action: "Allow", protocol: "ICMPv6", notICMP: { type: 128 } }],
  ["allow HTTP requests", { action: "Allow", protocol: "TCP", http: { methods: ["*"] } }],
  [
    'allow IPv4 HTTP requests with method GET or HEAD and path "/a" or beginning with "/b/" to port 80',
    {
      ...{ action: "Allow", ipVersion: 4, destination: { ports: [80] } },
      http: { methods: ["GET", "HEAD"], paths: [{ exact: "/a" }, { prefix: "/b/" }] },
    },
  ],
  ["deny everything to nodes", { action: "Deny", destination: { selector: "has(pcno.vendor.org/node)" } }],
  [
    "deny everything to nodes with disk == 'ssd' && ! has(gpu)",
    {
      action: "Deny",
      destination: { selector: "has(pcno.vendor.org/node) && pcno.disk == 'ssd' && ! has(pcno.gpu)" },
    },
  ],
  ["allow protocol 47", { action: "Allow", protocol: 47 }],
  [
    "allow TCP from 10.0.0.0/8, addresses except 10.1.0.0/16 or 10.2.0.0/16",
    { action: "Allow", protocol: "TCP", source: { nets: ["10.0.0.0/8"], notNets: ["10.1.0.0/16", "10.2.0.0/16"] } },
  ],
  [
    "allow everything to addresses except 10.0.0.0/8 or ::/0",
    { action: "Allow", destination: { notNets: ["10.0.0.0/8"] } },
  ],
  ["deny everything to addresses except 10.0.0.0/8", { action: "Deny", destination: { notNets: ["10.0.0.0/8"] } }],
  [
    'allow SCTP to port 80, 90-99 or "web"',
    { action: "Allow", protocol: "SCTP", destination: { ports: [80, "90:99", "web"] } },
  ],
  ["deny TCP to ports except 22", { action: "Deny", protocol: "TCP", destination: { notPorts: [22] } }],
  [
    `allow everything from endpoints with app == 'a' in namespace "red"`,
    { action: "Allow", source: { selector: "app == 'a'" } },
    "red",
  ],
  [
    "allow everything from endpoints in any namespace",
    { action: "Allow", source: { namespaceSelector: "all()" } },
    "red",
  ],
  [
    "allow everything to endpoints with app == 'a' of service account reader or writer in namespaces with team == 'x'",
    {
      action: "Allow",
      destination: {
        selector: "app == 'a'",
        namespaceSelector: "team == 'x'",
        serviceAccounts: { names: ["reader", "writer"] },
      },
    },
    "red",
  ],
  [
    "deny everything from everything except endpoints with has(safe)",
    { action: "Deny", source: { notSelector: "has(safe)" } },
  ],
  ['allow everything to service "red/web"', { action: "Allow", destination: { services: { name: "web" } } }, "red"],
];

describe("ruleWords()", () => {
  for (const [words, rule, namespace] of ROWS) {
    test(words, () => {
      expect(ruleWords(rule, namespace)).toBe(words);
    });
  }
});
