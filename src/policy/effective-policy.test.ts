import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import { effectiveRule, UnsupportedRule } from "./effective-policy.ts";
import type { Direction } from "./effective-rule.ts";

const OWNER = { namespace: "red", selector: "has(own)" };
const resolve = (rule: object, direction: Direction = "ingress", owner: object = OWNER) =>
  effectiveRule({ action: "Allow", ...rule } as PolicyRule, direction, {
    selector: "has(own)",
    hasServices: true,
    ...owner,
  });

describe("effectiveRule()", () => {
  test("resolves names of protocols, in any case, and numbers", () => {
    expect(resolve({ protocol: "SCTP" }).protocol).toBe(132);
    expect(resolve({ protocol: "udp" }).protocol).toBe(17);
    expect(resolve({ notProtocol: 47 }).notProtocol).toBe(47);
  });

  test("separates ranges and names of ports", () => {
    const { destination } = resolve({ protocol: "TCP", destination: { ports: [80, "1000:2000", "443", "web"] } });
    expect(destination.ports).toEqual({
      ranges: [
        { first: 80, last: 80 },
        { first: 1000, last: 2000 },
        { first: 443, last: 443 },
      ],
      named: { kind: "named port", selector: "has(own)", protocol: 6, names: ["web"] },
    });
  });

  test("looks named ports up among the peers that the rule selects, then among the endpoints of the policy", () => {
    const named = (rule: object, direction: Direction, side: "source" | "destination") =>
      resolve({ protocol: "TCP", ...rule }, direction)[side].ports?.named?.selector;
    const web = { ports: ["web"] };
    expect(named({ destination: web }, "ingress", "destination")).toBe("has(own)");
    expect(named({ destination: web }, "egress", "destination")).toBe("all()");
    expect(named({ source: web }, "egress", "source")).toBe("has(own)");
    expect(named({ destination: { ...web, selector: "has(app)" } }, "egress", "destination")).toBe(
      `has(app) && ${identity.labelPrefix}namespace == "red"`,
    );
  });

  test("treats empty lists as absent, as other criteria", () => {
    const { source } = resolve({ protocol: "TCP", source: { nets: [], ports: [], notPorts: [], notNets: [] } });
    expect(source).toEqual({ notNets: [], members: [], notMembers: [] });
  });

  test("does not restrict a notSelector to the namespace, but the rule with it", () => {
    const { source } = resolve({ source: { notSelector: "has(app)" } });
    expect(source.notMembers).toEqual([{ kind: "selected", selector: "has(app)" }]);
    expect(source.members).toEqual([{ kind: "selected", selector: `${identity.labelPrefix}namespace == "red"` }]);
  });

  test("takes the namespace of the policy for a service without one", () => {
    const { destination } = resolve({ destination: { services: { name: "web" } } });
    expect(destination.members).toEqual([{ kind: "service", namespace: "red", name: "web", withPorts: true }]);
  });

  test.each([
    ["http of UDP", { protocol: "UDP", http: {} }, OWNER],
    ["http of everything but TCP", { notProtocol: 6, http: {} }, OWNER],
    ["http in a rule that denies", { action: "Deny", http: {} }, OWNER],
    ["http in a profile", { http: {} }, { withoutHttp: "in a profile" }],
    ["a criterion of http that it does not know", { http: { headers: [] } }, OWNER],
    ["ports without a protocol", { destination: { ports: [80] } }, OWNER],
    ["an unknown protocol", { protocol: "nonsense" }, OWNER],
    ["an ICMP code without a type", { protocol: "ICMP", icmp: { code: 0 } }, OWNER],
    ["a service without any namespace", { source: { services: { name: "web" } } }, { namespace: undefined }],
  ])("refuses %s", (_, rule, owner) => {
    expect(() => resolve(rule, "ingress", owner)).toThrow(UnsupportedRule);
  });
});
