import { describe, expect, test } from "bun:test";
import {
  groupChainName,
  policyChainName,
  prefixesTwin,
  rangeSetName,
  setName,
  wholeNameOf,
  wholeSetName,
} from "./names.ts";

const LONGEST_NAME = 127;

describe("names in the policy table", () => {
  test("are a kind and 20 letters and digits, always the same", () => {
    expect(setName({ kind: "selected", selector: 'app == "a"' }, 4)).toBe("s_g2cfqkl6u7vidm3gaasy_4");
    expect(policyChainName("red/deny", "ingress", { rest: undefined })).toMatch(/^pi_[a-z2-7]{20}$/);
    expect(groupChainName("tier Deny", "egress")).toMatch(/^ge_[a-z2-7]{20}$/);
  });

  test("the whole set is known by the names of its parts", () => {
    const selected = { kind: "selected", selector: "has(app)" } as const;
    const service = { kind: "service", namespace: "red", name: "web", withPorts: true } as const;
    const parts = [setName(selected, 4), setName(selected, 6), setName(selected, 4, "prefixes"), setName(service, 4)];
    const [whole, ofService] = [wholeSetName(selected), wholeSetName(service)];

    expect(parts.map(wholeNameOf)).toEqual([whole, whole, whole, ofService]);
    expect(wholeNameOf("workloads_from")).toBe("workloads_from");
  });

  test("differ by reference, family, content and direction", () => {
    const selected = { kind: "selected", selector: "has(app)" } as const;
    const service = { kind: "service", namespace: "red", name: "web", withPorts: true } as const;
    const port = { kind: "named port", selector: "has(app)", protocol: 6, names: ["web"] } as const;
    const names = [
      setName(selected, 4),
      setName(selected, 6),
      setName(selected, 4, "prefixes"),
      setName(service, 4),
      setName({ ...service, withPorts: false }, 4),
      setName(port, 4),
      setName({ ...port, protocol: 17 }, 4),
      policyChainName("red/deny", "ingress", { rest: undefined }),
      policyChainName("red/deny", "egress", { rest: undefined }),
      policyChainName("red/deny", "ingress", { rest: undefined, isWithoutHttp: true }),
      policyChainName("red/deny", "ingress", { rest: "gi_rest" }),
    ];

    expect(new Set(names).size).toBe(names.length);
  });

  test("of sets of ranges differ by type and ranges", () => {
    const range = (first: number, last: number) => ({ first: Uint8Array.of(0, first), last: Uint8Array.of(0, last) });
    const names = [
      rangeSetName({ key: "inet_service", ranges: [range(1, 2), range(4, 5)] }),
      rangeSetName({ key: "inet_service", ranges: [range(1, 2)] }),
      rangeSetName({ key: "inet_service", ranges: [range(1, 5)] }),
      rangeSetName({ key: "ipv4_addr", ranges: [range(1, 5)] }),
    ];

    expect(new Set(names).size).toBe(names.length);
    expect(names[0]).toMatch(/^r_[a-z2-7]{20}$/);
  });

  test("tell which set has the networks of a selector", () => {
    const selected = { kind: "selected", selector: "has(app)" } as const;

    expect(prefixesTwin(setName(selected, 6))).toBe(setName(selected, 6, "prefixes"));
    expect(prefixesTwin(setName(selected, 6, "prefixes"))).toBe("");
  });

  test("are short however long the name of the policy is", () => {
    expect(policyChainName("x".repeat(1_000), "ingress", { rest: undefined }).length).toBeLessThan(LONGEST_NAME);
  });
});
