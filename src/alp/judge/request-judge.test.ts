import { describe, expect, test } from "bun:test";
import { parseAddress } from "../../ip/address.ts";
import { MalformedMessage } from "../protocol/malformed-message.ts";
import type { SidecarRule, SidecarSet, SidecarTier, SidecarUpdate } from "../protocol/sidecar-state.ts";
import { type IncomingRequest, RequestJudge } from "./request-judge.ts";

const ANY = { source: {}, destination: {} };
const ALLOW: SidecarRule = { index: 0, action: "Allow", ...ANY };
const DENY: SidecarRule = { index: 0, action: "Deny", ...ANY };
const PASS: SidecarRule = { index: 0, action: "Pass", ...ANY };

const NOBODY: IncomingRequest = {
  source: address("192.0.2.9"),
  sourcePort: 40_000,
  destinationPort: 80,
  http: { method: "GET", path: "/items/7?all=1" },
};
const READER = { ...NOBODY, principal: "spiffe://cluster.local/ns/red/sa/reader" };

function address(text: string) {
  const parsed = parseAddress(text);
  if (parsed === undefined) throw new Error(text);
  return parsed;
}

function from(text: string, more: Partial<IncomingRequest> = {}): IncomingRequest {
  return { ...NOBODY, source: address(text), ...more };
}

interface Site {
  readonly rules: readonly SidecarRule[];
  readonly sets?: Readonly<Record<string, SidecarSet>>;
}

/** A pod with one policy, "red/web", in tier "default". */
function whole({ rules, sets = {} }: Site): SidecarUpdate {
  return {
    type: "update",
    revision: 1,
    addresses: ["10.0.0.1", "fd00::1"],
    evaluation: { tiers: [tier("default", "red/web")], profiles: [ALLOW] },
    policies: { "red/web": { title: "red/web", rules } },
    sets,
  };
}

function tier(name: string, ...policies: readonly string[]): SidecarTier {
  return { name, defaultAction: "Deny", policies };
}

function judgeOf(site: Site): RequestJudge {
  const judge = new RequestJudge("cluster.local");
  judge.apply(whole(site));
  return judge;
}

describe("RequestJudge: criteria of a rule", () => {
  const sets = {
    clients: { members: ["192.0.2.9", "198.51.100.0/24", "fd00::9"] },
    others: { members: ["192.0.2.8"] },
    web: { members: ["10.0.0.1 6 80", "10.0.0.7 6 81"] },
    readers: { members: ["red/reader"] },
    empty: { members: [] },
  };
  const source = (peer: SidecarRule["source"]) => ({ ...ALLOW, source: peer });
  const destination = (peer: SidecarRule["destination"]) => ({ ...ALLOW, destination: peer });
  const http = (match: SidecarRule["http"]) => ({ ...ALLOW, http: match ?? {} });
  const tcp = { source: NOBODY.source, destinationPort: 80 };

  test.each<readonly [string, SidecarRule, IncomingRequest, "allow" | "deny"]>([
    ["no criterion", ALLOW, NOBODY, "allow"],
    ["family", { ...ALLOW, family: 4 }, NOBODY, "allow"],
    ["another family", { ...ALLOW, family: 6 }, NOBODY, "deny"],
    ["an IPv4 address within IPv6", { ...ALLOW, family: 4 }, from("::ffff:192.0.2.9"), "allow"],
    ["a network", source({ nets: ["10.0.0.0/8", "192.0.2.8/31"] }), NOBODY, "allow"],
    ["an address as a network", source({ nets: ["192.0.2.9"] }), NOBODY, "allow"],
    ["every address", source({ nets: ["0.0.0.0/0"] }), from("255.255.255.255"), "allow"],
    ["every address of the other family", source({ nets: ["::/0"] }), NOBODY, "deny"],
    ["networks of IPv6", source({ nets: ["fd00::/64", "fd00:1::/32"] }), from("fd00:1:2::3"), "allow"],
    ["other networks", source({ nets: ["192.0.2.10/31", "192.0.2.0/29"] }), NOBODY, "deny"],
    ["no network", source({ nets: [] }), NOBODY, "deny"],
    ["an excluded network", source({ notNets: ["192.0.2.0/24"] }), NOBODY, "deny"],
    ["a set", source({ sets: ["clients"] }), NOBODY, "allow"],
    ["a set with the network", source({ sets: ["clients"] }), from("198.51.100.77"), "allow"],
    ["a set of IPv6", source({ sets: ["clients"] }), from("fd00::9"), "allow"],
    ["a set without the address", source({ sets: ["others"] }), NOBODY, "deny"],
    ["two sets, one without the address", source({ sets: ["clients", "others"] }), NOBODY, "deny"],
    ["an excluded set", source({ notSets: ["clients"] }), NOBODY, "deny"],
    ["an excluded set without the address", source({ notSets: ["others", "empty"] }), NOBODY, "allow"],
    ["a source port", source({ ports: { ranges: [[40_000, 40_001]] } }), NOBODY, "allow"],
    ["an unknown source port", source({ ports: { ranges: [[0, 65_535]] } }), tcp, "deny"],
    ["an unknown source port that is excluded", source({ notPorts: { ranges: [[0, 65_535]] } }), tcp, "allow"],
    [
      "a port",
      destination({
        ports: {
          ranges: [
            [443, 443],
            [80, 80],
          ],
        },
      }),
      NOBODY,
      "allow",
    ],
    ["another port", destination({ ports: { ranges: [[81, 90]] } }), NOBODY, "deny"],
    ["an excluded port", destination({ notPorts: { ranges: [[80, 80]] } }), NOBODY, "deny"],
    ["a named port", destination({ ports: { ranges: [], set: "web" } }), NOBODY, "allow"],
    ["a named port of another pod", destination({ ports: { ranges: [], set: "web" } }), to(81), "deny"],
    ["an excluded named port", destination({ notPorts: { ranges: [], set: "web" } }), NOBODY, "deny"],
    ["a service with its port", destination({ sets: ["web"] }), NOBODY, "allow"],
    ["a service with another port", destination({ sets: ["web"] }), to(81), "deny"],
    ["the address of the pod", destination({ nets: ["10.0.0.1"] }), NOBODY, "allow"],
    ["the other address of the pod", destination({ nets: ["fd00::1"] }), NOBODY, "deny"],
    ["an identity", source({ identities: "readers" }), READER, "allow"],
    ["another identity", source({ identities: "empty" }), READER, "deny"],
    ["no certificate", source({ identities: "readers" }), NOBODY, "allow"],
    ["an empty principal", source({ identities: "readers" }), { ...NOBODY, principal: "" }, "deny"],
    ["an identity, but not the address", source({ identities: "readers", sets: ["others"] }), READER, "deny"],
    ["an identity of another mesh", source({ identities: "readers" }), ofMesh("other.example"), "deny"],
    ["every request", http({}), NOBODY, "allow"],
    ["every request, and a connection that is not HTTP", http({}), tcp, "deny"],
    ["a method", http({ methods: ["POST", "GET"] }), NOBODY, "allow"],
    ["every method", http({ methods: ["*"] }), NOBODY, "allow"],
    ["another method", http({ methods: ["POST", "get"] }), NOBODY, "deny"],
    ["a path", http({ paths: [{ exact: "/other" }, { exact: "/items/7" }] }), NOBODY, "allow"],
    ["a prefix", http({ paths: [{ prefix: "/other" }, { prefix: "/items/" }] }), NOBODY, "allow"],
    ["a prefix that is longer than the path", http({ paths: [{ prefix: "/items/7/more" }] }), NOBODY, "deny"],
    ["a prefix as an exact path", http({ paths: [{ exact: "/items/" }] }), NOBODY, "deny"],
    ["a path after dots", http({ paths: [{ prefix: "/items/" }] }), path("/items/../admin"), "deny"],
    ["an ambiguous path", http({ paths: [{ prefix: "/" }] }), path("/items/%252e%252e/admin"), "deny"],
    ["an ambiguous path, and no paths", http({ methods: ["GET"] }), path("/items/%252e"), "allow"],
  ])("%s", (_, rule, request, verdict) => {
    expect(judgeOf({ rules: [rule], sets }).decide(request).verdict).toBe(verdict);
  });

  function to(port: number): IncomingRequest {
    return { ...NOBODY, destinationPort: port };
  }

  function path(text: string): IncomingRequest {
    return { ...NOBODY, http: { method: "GET", path: text } };
  }

  function ofMesh(domain: string): IncomingRequest {
    return { ...NOBODY, principal: `spiffe://${domain}/ns/red/sa/reader` };
  }
});

describe("RequestJudge: identity, by action", () => {
  const sets = { clients: { members: ["192.0.2.9"] }, nobody: { members: [] } };
  const byIdentity = { sets: ["clients"], identities: "nobody" };
  const READER = { ...NOBODY, principal: "spiffe://cluster.local/ns/red/sa/reader" };
  const rule = (action: SidecarRule["action"]): SidecarRule => ({ ...ALLOW, action, source: byIdentity });

  test("a rule that denies is compared with the address alone: a certificate does not lead past it", () => {
    const judge = judgeOf({ rules: [rule("Deny"), ALLOW], sets });
    expect(judge.decide(READER).verdict).toBe("deny");
    expect(judge.decide({ ...READER, source: address("192.0.2.8") }).verdict).toBe("allow");
  });

  test("a rule that allows or passes must match the identity too", () => {
    expect(judgeOf({ rules: [rule("Allow")], sets }).decide(READER).verdict).toBe("deny");
    expect(judgeOf({ rules: [rule("Pass")], sets }).decide(READER).verdict).toBe("deny");
    expect(judgeOf({ rules: [rule("Pass")], sets }).decide(NOBODY).verdict).toBe("allow");
  });

  test("a rule of a profile that passes denies", () => {
    const judge = new RequestJudge("cluster.local");
    judge.apply({ ...whole({ rules: [], sets }), evaluation: { tiers: [], profiles: [rule("Pass"), ALLOW] } });
    expect(judge.decide(READER).verdict).toBe("deny");
  });
});

describe("RequestJudge: evaluation", () => {
  test("denies everything until the node agent has sent the policies", () => {
    const decision = new RequestJudge("cluster.local").decide(from("192.0.2.1"));
    expect(decision.verdict).toBe("deny");
    expect(decision.reason).toStartWith("not synchronised");
  });

  test("denies a source of a family that the pod has no address of", () => {
    const judge = new RequestJudge("cluster.local");
    judge.apply({ ...whole({ rules: [ALLOW] }), addresses: ["10.0.0.1"] });
    expect(judge.decide(from("fd00::9"))).toMatchObject({ verdict: "deny", reason: "the pod has no IPv6 address" });
  });

  test("says which rule decided", () => {
    const judge = judgeOf({
      rules: [
        { ...PASS, family: 6 },
        { ...ALLOW, index: 4 },
        { ...DENY, index: 5 },
      ],
    });
    expect(judge.decide(NOBODY)).toEqual({
      verdict: "allow",
      reason: 'rule 4 of policy "red/web" allows it',
      policy: "red/web",
      rule: 4,
    });
  });

  test("the first of many matching rules decides, whatever each is filed under", () => {
    const rules: readonly SidecarRule[] = [
      { ...ALLOW, index: 0, http: { paths: [{ prefix: "/items" }, { prefix: "/" }] }, source: { sets: ["empty"] } },
      { ...DENY, index: 1, http: { paths: [{ exact: "/items/7" }] }, family: 6 },
      { ...DENY, index: 2, source: { nets: ["192.0.2.0/24", "192.0.0.0/16"] } },
      { ...ALLOW, index: 3, http: { paths: [{ exact: "/items/7" }] } },
      { ...ALLOW, index: 4, source: { sets: ["clients"] } },
      { ...ALLOW, index: 5 },
    ];
    const sets = { empty: { members: [] }, clients: { members: ["192.0.2.9"] } };
    const places = rules.map((_, first) => judgeOf({ rules: rules.slice(first), sets }).decide(NOBODY).rule);
    expect(places).toEqual([2, 2, 2, 3, 4, 5]);
  });

  test("goes through the tiers, then the profiles", () => {
    const judge = judgeOf({ rules: [{ ...PASS, family: 4 }] });
    expect(judge.decide(NOBODY)).toEqual({ verdict: "allow", reason: "rule 0 of a profile allows it" });
    expect(judge.decide(from("fd00::9"))).toEqual({
      verdict: "deny",
      reason: 'no rule of tier "default" matches',
      tier: "default",
    });
    judge.apply({ type: "update", revision: 2, evaluation: { tiers: [tier("default", "red/web")], profiles: [] } });
    expect(judge.decide(NOBODY)).toEqual({ verdict: "deny", reason: "no profile allows it" });
    const passing = { ...tier("first", "red/web"), defaultAction: "Pass" as const };
    const evaluation = { tiers: [passing, tier("empty")], profiles: [ALLOW] };
    judge.apply({ type: "update", revision: 3, evaluation });
    expect(judge.decide(from("fd00::9")).verdict).toBe("allow");
  });
});

describe("RequestJudge.apply()", () => {
  const inSet = { ...ALLOW, source: { sets: ["clients"] } };
  const site: Site = { rules: [inSet], sets: { clients: { members: ["192.0.2.9"] } } };

  test("changes members, sets and policies", () => {
    const judge = judgeOf(site);
    const eight = from("192.0.2.8");
    const update = (revision: number, changes: Partial<SidecarUpdate>) =>
      judge.apply({ type: "update", revision, ...changes });
    const verdicts = () => [judge.decide(NOBODY).verdict, judge.decide(eight).verdict];
    expect(verdicts()).toEqual(["allow", "deny"]);
    update(2, { sets: { clients: { add: ["192.0.2.8"], remove: ["192.0.2.9"] } } });
    expect(verdicts()).toEqual(["deny", "allow"]);
    update(3, { sets: { clients: { add: ["192.0.2.8/32"], remove: [] } } });
    update(4, { sets: { clients: { add: [], remove: ["192.0.2.8"] } } });
    expect(verdicts()).toEqual(["deny", "allow"]);
    update(5, { sets: { clients: { members: ["192.0.2.9"] } } });
    expect(verdicts()).toEqual(["allow", "deny"]);
    update(6, { sets: { clients: null }, policies: { "red/web": { title: "red/web", rules: [DENY] } } });
    expect(verdicts()).toEqual(["deny", "deny"]);
    update(7, { policies: { "red/web": null }, evaluation: { tiers: [], profiles: [ALLOW] } });
    expect(verdicts()).toEqual(["allow", "allow"]);
    expect(judge.revision).toBe(7);
  });

  test("a first update replaces everything", () => {
    const judge = judgeOf(site);
    judge.apply(whole({ rules: [inSet], sets: { clients: { members: ["192.0.2.8"] } } }));
    expect(judge.decide(NOBODY).verdict).toBe("deny");
    expect(judge.decide(from("192.0.2.8")).verdict).toBe("allow");
  });

  /** Each would let everything through if a part of it were applied. */
  const open = { evaluation: { tiers: [], profiles: [ALLOW] } };
  test.each<readonly [field: string, Partial<SidecarUpdate>]>([
    ["revision", { revision: 3 }],
    ["revision", { revision: 0 }],
    ["addresses", { revision: 1 }],
    ["evaluation", { revision: 1, addresses: [], evaluation: undefined as never }],
    ["addresses[0]", { addresses: ["10.0.0.1/32"] }],
    ["evaluation.tiers[0].policies[0]", { evaluation: { tiers: [tier("default", "gone")], profiles: [] } }],
    ["evaluation.profiles[0]", { evaluation: { tiers: [], profiles: [{ ...ALLOW, source: { notSets: ["gone"] } }] } }],
    ["evaluation.profiles[0].source.nets[0]", profileFrom("10.0.0.0/33")],
    ["evaluation.profiles[0].source.nets[0]", profileFrom("10.0.0.1/24")],
    ["policies.red/web.rules[0]", { sets: { clients: null } }],
    ["policies.x.rules[0]", policyWith({ sets: ["gone"] })],
    ["policies.x.rules[0]", policyWith({ ports: { ranges: [], set: "gone" } })],
    ["policies.x.rules[0]", policyWith({ identities: "gone" })],
    ["policies.x.rules[0].source.notNets[0]", policyWith({ notNets: ["all"] })],
    ["sets.gone", { sets: { gone: { add: [], remove: [] } } }],
    ["sets.clients.members[1]", { sets: { clients: { members: ["192.0.2.8", "192.0.2.300"] } } }],
    ["sets.clients.add[0]", { sets: { clients: { add: ["192.0.2.8 17 80"], remove: [] } } }],
    ["sets.clients.add[0]", { sets: { clients: { add: ["192.0.2.8 6 65536"], remove: [] } } }],
    ["sets.clients.remove[0]", { sets: { clients: { add: ["192.0.2.8"], remove: [""] } } }],
  ])("names %s of an update that it cannot apply, and keeps the former state", (field, changes) => {
    const judge = judgeOf(site);
    const update: SidecarUpdate = { type: "update", revision: 2, ...open, ...changes };
    let thrown: unknown;
    try {
      judge.apply(update);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(MalformedMessage);
    expect((thrown as MalformedMessage).field).toBe(field);
    expect([judge.decide(NOBODY), judge.decide(from("192.0.2.8"))].map(({ verdict }) => verdict)).toEqual([
      "allow",
      "deny",
    ]);
    judge.apply({ type: "update", revision: 2, sets: { clients: { add: [], remove: ["192.0.2.9"] } } });
    expect(judge.decide(NOBODY).verdict).toBe("deny");
  });

  function policyWith(source: SidecarRule["source"]): Partial<SidecarUpdate> {
    return { policies: { x: { title: "x", rules: [{ ...ALLOW, source }] } } };
  }

  function profileFrom(net: string): Partial<SidecarUpdate> {
    return { evaluation: { tiers: [], profiles: [{ ...ALLOW, source: { nets: [net] } }] } };
  }
});
