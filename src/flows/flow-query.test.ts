import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { shortComment } from "../policy/table/rule-comment.ts";
import { type FlowQuery, FlowQueryError, matcherOf, parametersOf, readFlowQuery } from "./flow-query.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";

const WEB: FlowEnd = {
  ...{ kind: "pod", address: "10.0.0.1", port: 40_000, namespace: "shop", name: "web-7d9f-abc" },
  ...{ owner: { kind: "Deployment", name: "web" }, labels: { app: "web", tier: "front" }, node: "one" },
};
const DATABASE: FlowEnd = {
  ...{
    kind: "pod",
    address: "10.0.1.1",
    port: 5432,
    namespace: "data",
    name: "db-0",
    labels: { app: "db" },
    node: "two",
  },
};
const SERVICE: FlowEnd = { kind: "service", address: "10.96.0.7", port: 80, namespace: "data", name: "db" };
const OUTSIDE: FlowEnd = { kind: "outside", address: "2001:db8::7", port: 443 };
const HOST: FlowEnd = { kind: "host", address: "192.0.2.1", name: "one" };
const SET: FlowEnd = { kind: "network set", address: "198.51.100.9", port: 443, name: "partners" };
const ZERO = { packets: 0, bytes: 0 };

function flow(fields: Partial<FlowRecord>): FlowRecord {
  return {
    ...{ id: "one-1", node: "one", family: 4, protocol: 6, source: WEB, destination: DATABASE, direction: "egress" },
    ...{ verdict: "allowed", decisions: [], state: "ended", start: 1_000, end: 2_000, sent: ZERO, received: ZERO },
    ...fields,
  };
}

const TO_SERVICE = flow({
  ...{ id: "one-2", destination: SERVICE, backend: DATABASE, seenAs: { address: "192.0.2.1", port: 3 } },
  decisions: [
    { point: "workload egress", verdict: "allow", rule: "shop/knp.default.web egress 0" },
    { point: "workload ingress", verdict: "allow", rule: "kcnp.guard ingress 0" },
  ],
});
const DENIED = flow({
  ...{ id: "two-3", node: "two", protocol: 17, source: OUTSIDE, destination: WEB, verdict: "denied", state: "denied" },
  decisions: [
    { point: "host in", verdict: "allow", rule: "failsafe ingress" },
    { point: "workload ingress", verdict: "deny", rule: "lockdown ingress 3" },
  ],
});
const OPEN = flow({ id: "one-4", source: HOST, destination: SET, state: "open", start: 3_000, end: 3_500 });
const ALL = [flow({}), TO_SERVICE, DENIED, OPEN];
const ids = (query: FlowQuery) => ALL.filter(matcherOf(query)).map(({ id }) => id);

describe("matcherOf()", () => {
  test.each<readonly [FlowQuery, readonly string[]]>([
    [{}, ["one-1", "one-2", "two-3", "one-4"]],
    [{ id: "one-2" }, ["one-2"]],
    [{ node: "two" }, ["two-3"]],
    [{ verdict: "denied" }, ["two-3"]],
    [{ since: 2_000 }, ["one-1", "one-2", "two-3", "one-4"]],
    // An open connection is there at any later time.
    [{ since: 2_001 }, ["one-4"]],
    [{ since: 9_000 }, ["one-4"]],
    [{ until: 2_999 }, ["one-1", "one-2", "two-3"]],
    [{ protocol: "UDP" }, ["two-3"]],
    [{ protocol: "6" }, ["one-1", "one-2", "one-4"]],
    [{ port: 5432 }, ["one-1", "one-2"]],
    [{ port: 80 }, ["one-2"]],
    // Of the source: never asked for.
    [{ port: 443, protocol: "udp" }, []],
    [{ namespace: "data" }, ["one-1", "one-2"]],
    [{ pod: "data/db-0" }, ["one-1", "one-2"]],
    [{ pod: "web-*" }, ["one-1", "one-2", "two-3"]],
    [{ pod: "shop/*" }, ["one-1", "one-2", "two-3"]],
    // The name of a Service, a host or a set is not the name of a pod.
    [{ pod: "db" }, []],
    [{ pod: "one" }, []],
    [{ label: "app=web" }, ["one-1", "one-2", "two-3"]],
    [{ label: "app=db,tier" }, []],
    [{ label: "app,tier=front" }, ["one-1", "one-2", "two-3"]],
    [{ from: "shop/web-7d9f-abc" }, ["one-1", "one-2"]],
    [{ to: "shop/web-*" }, ["two-3"]],
    [{ from: "outside" }, ["two-3"]],
    [{ from: "2001:db8::/32" }, ["two-3"]],
    [{ from: "10.0.0.1" }, ["one-1", "one-2"]],
    [{ from: "192.0.2.1" }, ["one-2", "one-4"]],
    [{ from: "node/one" }, ["one-4"]],
    [{ to: "service/data/db" }, ["one-2"]],
    [{ to: "10.0.0.0/15" }, ["one-1", "one-2", "two-3"]],
    [{ to: "set/partners" }, ["one-4"]],
    [{ policy: "lockdown" }, ["two-3"]],
    [{ policy: "shop/web" }, ["one-2"]],
    [{ policy: "shop/knp.default.web" }, ["one-2"]],
    [{ policy: "knp.*" }, ["one-2"]],
    [{ policy: "web" }, ["one-2"]],
    [{ policy: "data/web" }, []],
    [{ policy: "guard" }, ["one-2"]],
    [{ policy: "kcnp.guard" }, ["one-2"]],
    [{ policy: "shop/guard" }, []],
    // A comment that looks like a policy's, but is none.
    [{ policy: "failsafe" }, []],
    [{ from: "shop/*", to: "data/*", port: 80 }, ["one-2"]],
  ])("%j", (query, expected) => {
    expect(ids(query)).toEqual([...expected]);
  });

  test("finds a policy whose name was too long for a comment", () => {
    const name = `${"x".repeat(150)}-end`;
    const rule = shortComment(`shop/${name} ingress 0`, 120);
    const record = flow({ decisions: [{ point: "workload ingress", verdict: "allow", rule }] });

    expect(matcherOf({ policy: `shop/${name}` })(record)).toBe(true);
    expect(matcherOf({ policy: name })(record)).toBe(true);
    for (const other of ["shop/other", `data/${name}`]) expect(matcherOf({ policy: other })(record)).toBe(false);
  });
});

describe("readFlowQuery()", () => {
  test.each<readonly [string, string, RegExp]>([
    ["since=yesterday", "since", /"yesterday" is not a number; use/],
    ["port=70000", "port", /70000 is not a port; use/],
    ["last=-1", "last", /"-1" is not a number/],
    ["last=10001", "last", /10001 flows are too many; use at most 10000/],
    ["verdict=dropped", "verdict", /"dropped" is not a verdict; use allowed, denied or unknown/],
    ["protocol=tpc", "protocol", /"tpc" is not a protocol; use tcp, udp/],
    ["protocol=300", "protocol", /"300" is not a protocol/],
    ["pod=a/b/c", "pod", /"a\/b\/c" is not a name; use/],
    ["pod=w*b", "pod", /may end with "\*"/],
    ["from=10.0.0.0/33", "from", /use .* an address/],
    ["to=service/", "to", /"service\/NAMESPACE\/NAME"/],
    ["label=app!=web", "label", /"app!=web" is not a label; use "key=value"/],
    ["label=", "label", /is not a label/],
    ["policy=a%20b", "policy", /"a b" is not a name/],
    ["colour=red", "colour", /no such field; use one of since, until/],
    ["__proto__=red", "__proto__", /no such field/],
    ["port=1&port=2", "port", /given twice/],
  ])("%s is refused with its field, value and what to use", (text, field, problem) => {
    const read = () => readFlowQuery(new URLSearchParams(text));

    expect(read).toThrow(FlowQueryError);
    expect(read).toThrow(problem);
    expect(read).toThrow(`"${field}"`);
  });

  test("reads what parametersOf() writes", () => {
    const text = (...values: readonly string[]) => fc.constantFrom(...values);
    const time = fc.nat();
    const query: fc.Arbitrary<FlowQuery> = fc.record(
      {
        ...{ since: time, until: time, last: fc.nat(10_000), port: fc.nat(65_535) },
        ...{ pod: text("a", "shop/web-*"), namespace: fc.string(), label: text("a=b,c", "x.y/z=") },
        ...{ from: text("outside", "::/0", "node/one"), to: text("set/a", "10.0.0.1"), protocol: text("tcp", "47") },
        verdict: fc.constantFrom("allowed" as const, "denied" as const, "unknown" as const),
        ...{ policy: text("shop/a", "b*"), node: fc.string(), id: fc.string() },
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(query, (given) => {
        expect(readFlowQuery(new URLSearchParams(parametersOf(given).toString()))).toEqual({ ...given });
      }),
    );
  });
});
