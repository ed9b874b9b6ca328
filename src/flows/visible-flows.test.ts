import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { FlowExplanation, FlowRollup } from "./flow-answer.ts";
import type { Sight } from "./flow-query.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";
import {
  mergedRollups,
  namespacesIn,
  type PolicyRights,
  readSight,
  seesEverything,
  sightText,
  visibleExplanation,
  visibleFlow,
  visibleRollup,
} from "./visible-flows.ts";

const NAMESPACES = ["ns-red", "ns-green", "ns-blue"] as const;
const KINDS = ["pod", "container", "host", "service", "network set", "outside"] as const;
const NOTHING: Sight = { everyPod: false, nodes: false, podsOf: new Set() };

/** Every text that says who it is contains `secret-TAG`, and the namespace. */
function endOf(tag: string, kind: FlowEnd["kind"], namespace: string): FlowEnd {
  if (kind === "outside") return { kind, address: `addr-${tag}`, port: 1 };
  if (kind === "host") return { kind, address: `addr-${tag}`, name: `secret-${tag}-node` };
  const named = { kind, address: `addr-${tag}`, port: 1, namespace, name: `secret-${tag}-name` };
  if (kind === "service" || kind === "network set") return named;
  return {
    ...named,
    owner: { kind: "Deployment", name: `secret-${tag}-owner` },
    labels: { [`secret-${tag}-key`]: namespace },
    node: `secret-${tag}-node`,
  };
}

const end = (tag: string) =>
  fc.tuple(fc.constantFrom(...KINDS), fc.constantFrom(...NAMESPACES)).map(([kind, name]) => endOf(tag, kind, name));

function idOn(tag: string) {
  return { id: "00ff", node: `secret-${tag}-node`, relatedTo: `6 secret-${tag} to others` };
}

const record = fc
  .record({ source: end("a"), destination: end("b"), backend: fc.option(end("c")), seenBy: fc.constantFrom("a", "b") })
  .map(({ source, destination, backend, seenBy }): FlowRecord => {
    const target = backend ?? destination;
    return {
      ...idOn(seenBy === "a" ? "a" : backend === null ? "b" : "c"),
      ...{ family: 4, protocol: 6, source, destination, ...(backend === null ? {} : { backend }) },
      ...{ direction: "both", verdict: "allowed", state: "open", start: 0, end: 0 },
      decisions: [
        { point: "host in", verdict: "allow", rule: "secret-host-in" },
        { point: "workload egress", verdict: "allow", rule: `secret-a-rule ${source.namespace}` },
        {
          point: "workload ingress",
          verdict: "allow",
          rule: `secret-${backend === null ? "b" : "c"}-rule ${target.namespace}`,
          requestsBySidecar: true,
        },
        { point: "host out", verdict: "unknown", unknown: "several rules" },
      ],
      staged: {
        verdict: "allowed",
        decisions: [
          { point: "workload egress", verdict: "allow", rule: `secret-a-rule ${source.namespace}` },
          {
            point: "workload ingress",
            verdict: "allow",
            rule: `secret-${backend === null ? "b" : "c"}-rule ${target.namespace}`,
          },
        ],
      },
      ...{ sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
    };
  });

const sight = fc
  .record({ everyPod: fc.boolean(), nodes: fc.boolean(), podsOf: fc.subarray([...NAMESPACES]) })
  .map((given): Sight => ({ ...given, podsOf: new Set(given.podsOf) }));

function isListed({ kind, namespace }: FlowEnd, { everyPod, nodes, podsOf }: Sight): boolean {
  if (kind === "host") return nodes;
  if (kind === "container") return everyPod;
  return (kind === "pod" || kind === "service") && (everyPod || podsOf.has(namespace ?? ""));
}

test("the text of a sight is read as the same one, and no other text is", () => {
  fc.assert(
    fc.property(sight, (given) => {
      const podsOf = given.everyPod ? new Set() : given.podsOf;
      expect(readSight(sightText(given))).toEqual({ ...given, podsOf } as Sight);
    }),
  );
  for (const text of ["everything", "pods/", "pods/a/b", "nodes,", "pods/a b"]) expect(readSight(text)).toBeUndefined();
});

describe("visibleFlow() of staged policies", () => {
  const flow: FlowRecord = {
    ...{ id: "1", node: "n", family: 4, protocol: 6, direction: "both", verdict: "allowed", decisions: [] },
    ...{
      source: endOf("a", "pod", "ns-red"),
      destination: endOf("b", "pod", "ns-blue"),
      state: "open",
      start: 0,
      end: 0,
    },
    ...{ sent: { packets: 1, bytes: 1 }, received: { packets: 1, bytes: 1 } },
  };
  const [leaving, entering] = ["workload egress", "workload ingress"] as const;
  const ofRed: Sight = { ...NOTHING, podsOf: new Set(["ns-red"]) };
  const shown = (egress: "allow" | "deny", ingress: "allow" | "deny") => {
    const decisions = [
      { point: leaving, verdict: egress, rule: "ns-red/a egress 0" },
      { point: entering, verdict: ingress, rule: "ns-blue/b ingress 0" },
    ];
    const verdict = [egress, ingress].includes("deny") ? "denied" : "allowed";
    return visibleFlow({ ...flow, staged: { verdict, decisions } }, ofRed)?.staged;
  };

  test("tells what the reader's own end would deny, whatever the other one would", () => {
    const own = [{ point: leaving, verdict: "deny" as const, rule: "ns-red/a egress 0" }];
    for (const other of ["allow", "deny"] as const)
      expect(shown("deny", other)).toEqual({ verdict: "denied", decisions: own });
  });

  test("tells nothing that depends on an end which the reader may not list", () => {
    for (const other of ["allow", "deny"] as const) expect(shown("allow", other)).toBeUndefined();
  });
});

describe("visibleFlow()", () => {
  test("shows a flow if and only if one of its ends may be listed", () => {
    fc.assert(
      fc.property(record, sight, (flow, given) => {
        const ends = [flow.source, flow.destination, ...(flow.backend ? [flow.backend] : [])];
        const isShown = seesEverything(given) || ends.some((each) => isListed(each, given));
        expect(visibleFlow(flow, given) !== undefined).toBe(isShown);
      }),
    );
  });

  test("leaves no text of an end that may not be listed, and no rule about it; addresses and verdicts stay", () => {
    fc.assert(
      fc.property(record, sight, (flow, given) => {
        const visible = visibleFlow(flow, given);
        if (visible === undefined || seesEverything(given)) return;
        const text = JSON.stringify(visible);
        const tagged = { a: flow.source, b: flow.destination, ...(flow.backend ? { c: flow.backend } : {}) };
        for (const [tag, each] of Object.entries(tagged)) {
          const isNamedSet = each.kind === "network set" && (given.everyPod || given.podsOf.has(each.namespace ?? ""));
          if (!isListed(each, given) && !isNamedSet) expect(text).not.toContain(`secret-${tag}`);
          expect(text).toContain(each.address);
        }
        const forbidden = NAMESPACES.filter((name) => !given.everyPod && !given.podsOf.has(name));
        for (const name of forbidden) expect(text).not.toContain(name);
        if (!given.nodes) expect(text).not.toContain("secret-host");
        expect(visible.decisions.map(({ verdict }) => verdict)).toEqual(flow.decisions.map(({ verdict }) => verdict));
      }),
    );
  });

  test("changes nothing for whoever may list everything", () => {
    fc.assert(
      fc.property(record, (flow) => {
        expect(visibleFlow(flow, { everyPod: true, nodes: true, podsOf: new Set() })).toEqual(flow);
      }),
    );
  });

  test("shows more to those who may list more, and never something else", () => {
    fc.assert(
      fc.property(record, sight, sight, (flow, first, second) => {
        const more: Sight = {
          everyPod: first.everyPod || second.everyPod,
          nodes: first.nodes || second.nodes,
          podsOf: first.podsOf.union(second.podsOf),
        };
        const [less, whole] = [visibleFlow(flow, first), visibleFlow(flow, more)];
        if (less === undefined) return;
        expect(whole).toBeDefined();
        for (const key of ["source", "destination", "backend"] as const) {
          if (less[key] !== undefined && less[key].kind !== "hidden") expect(whole?.[key]).toEqual(less[key]);
        }
      }),
    );
  });

  test("asks about every namespace that decides", () => {
    fc.assert(
      fc.property(record, sight, (flow, given) => {
        const known = new Set(namespacesIn({ flow }));
        const asked: Sight = { ...given, podsOf: given.podsOf.intersection(known) };
        expect(visibleFlow(flow, asked)).toEqual(visibleFlow(flow, given));
      }),
    );
  });
});

const ROLLUP: FlowRollup = {
  ...{ node: "node-1", from: 0, until: 60_000, protocol: 6, port: 80, verdict: "allowed" },
  source: { kind: "pod", namespace: "ns-red", name: "client", ownerKind: "Deployment" },
  destination: { kind: "pod", namespace: "ns-blue", name: "server" },
  rules: ["workload egress: policy ns-red/out", "workload ingress: policy ns-blue/in", "host out: policy host"],
  ...{ flows: 2, packets: 3, bytes: 4 },
};

describe("visibleRollup()", () => {
  test("hides the other end and the rules about it", () => {
    expect(visibleRollup(ROLLUP, { ...NOTHING, podsOf: new Set(["ns-red"]) })).toEqual({
      ...ROLLUP,
      node: "hidden",
      destination: { kind: "hidden" },
      rules: ["workload egress: policy ns-red/out"],
    });
    expect(visibleRollup(ROLLUP, { ...NOTHING, nodes: true })).toBeUndefined();
    expect(visibleRollup(ROLLUP, NOTHING)).toBeUndefined();
  });

  test("sums those that became equal", () => {
    const other = { ...ROLLUP, node: "node-2", destination: { ...ROLLUP.destination, name: "other" }, flows: 10 };
    const given = { ...NOTHING, podsOf: new Set(["ns-red"]) };
    const visible = [ROLLUP, other].flatMap((each) => visibleRollup(each, given) ?? []);

    expect(mergedRollups(visible)).toEqual([expect.objectContaining({ flows: 12, packets: 6, bytes: 8 })]);
    expect(mergedRollups([ROLLUP, other])).toEqual([ROLLUP, other]);
  });
});

const EVERY_POLICY: PolicyRights = { of: () => true, clusterPolicies: true };
const CLUSTER_POLICY = { title: "ClusterNetworkPolicy every-pod", tier: "kube-admin", outcome: "no match" };

describe("visibleExplanation()", () => {
  const flow = fc.sample(
    record.filter(({ backend }) => backend === undefined),
    1,
  )[0];
  if (flow === undefined) throw new Error("no flow");
  const side = (direction: "ingress" | "egress", namespace: string) => ({
    ...{ direction, namespace, of: `${namespace}/x`, verdict: "denied", reason: "r; judged on node n-1, not on n-2" },
    policies: [{ title: `NetworkPolicy ${namespace}/p`, tier: "default", outcome: "no match" }],
  });
  const ingress = side("ingress", "ns-blue");
  const explanation: FlowExplanation = {
    flow: {
      ...flow,
      // The rules of the sample are of other namespaces.
      ...{ decisions: [], node: "n-2", source: endOf("a", "pod", "ns-red"), destination: endOf("b", "pod", "ns-blue") },
    },
    sides: [side("egress", "ns-red"), { ...ingress, policies: [CLUSTER_POLICY, ...ingress.policies] }],
    missing: ["about ns-blue"],
  };

  test("has the sides of visible ends alone", () => {
    const given = { ...NOTHING, podsOf: new Set(["ns-red"]) };
    const visible = visibleExplanation(explanation, given, EVERY_POLICY);

    expect(visible?.sides?.map(({ direction, reason }) => [direction, reason])).toEqual([["egress", "r"]]);
    expect(JSON.stringify(visible)).not.toContain("ns-blue");
    expect(JSON.stringify(visible)).not.toContain("n-2");
  });

  test("has no side whose policies the reader may not list", () => {
    const given = { everyPod: true, nodes: true, podsOf: new Set<string>() };
    const sidesFor = (rights: Partial<PolicyRights>) =>
      visibleExplanation(explanation, given, { ...EVERY_POLICY, ...rights })?.sides?.map(({ direction }) => direction);

    expect(sidesFor({})).toEqual(["egress", "ingress"]);
    expect(sidesFor({ of: (namespace) => namespace !== "ns-blue" })).toEqual(["egress"]);
    expect(sidesFor({ of: (namespace) => namespace !== undefined })).toEqual([]);
    expect(sidesFor({ clusterPolicies: false })).toEqual(["egress"]);
    expect(visibleExplanation(explanation, NOTHING, EVERY_POLICY)).toBeUndefined();
  });
});
