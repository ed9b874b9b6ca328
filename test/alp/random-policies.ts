/** Random policies of the pod "web" and random requests to it: few names and paths, so that they meet often. */
import fc from "fast-check";
import { API_VERSION } from "../../src/identity.ts";
import { CLIENTS, type ClientName, SHOP } from "./alp-cluster.ts";
import { PORTS } from "./served-pod.ts";

export interface RandomRequest {
  readonly client: ClientName;
  readonly identity?: string;
  readonly method: string;
  readonly path: string;
}

const FIRST_TIER = "first";
const MARKER_TIER = "marker";
const METHODS = ["GET", "POST", "PUT", "DELETE"];
const PATHS = ["/", "/a", "/a/", "/a/b", "/b", "/b/c"];
/** Some are read as others, some are ambiguous. */
const REQUESTED = [
  ...PATHS,
  "/a?x=/b",
  "/%61",
  "/a%2Fb",
  "//a",
  "/a//b",
  "/b/../a",
  "/a/%2e%2e/b",
  "/ab",
  "/a/..%2Fb",
  "/%2561",
  "/a/..;/b",
  "/a\\b",
  "/..",
  "/a%zz",
  "/a/.",
  "/A",
];
const FOREIGN = "spiffe://elsewhere.example/ns/shop/sa/frontend";

const pick = <Value>(values: readonly Value[]) => fc.constantFrom(...values);
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined });
const some = <Value>(values: readonly Value[]) => fc.subarray([...values], { minLength: 1, maxLength: 3 });

const http = fc
  .record({
    methods: optional(some([...METHODS, "*"])),
    paths: optional(some([...PATHS.map((exact) => ({ exact })), ...PATHS.map((prefix) => ({ prefix }))])),
  })
  .map(defined);

/** `addresses`: of the clients. */
function sources(addresses: readonly string[]) {
  const nets = some([...addresses.map((address) => `${address}/32`), "10.0.0.0/8"]);
  return fc.oneof(
    fc.record({ nets }),
    fc.record({ notNets: nets }),
    fc.record({ selector: pick(["tier == 'front'", "tier == 'back'", "has(tier)"]) }),
    fc.record({ notSelector: pick(["tier == 'front'", "tier == 'back'"]) }),
    fc.record({ serviceAccounts: fc.record({ names: some(Object.keys(CLIENTS)) }) }),
    fc.record({
      namespaceSelector: pick([
        "all()",
        "kubernetes.io/metadata.name == 'other'",
        "kubernetes.io/metadata.name == 'shop'",
      ]),
      selector: pick(["all()", "tier == 'front'"]),
    }),
    fc.record({
      namespaceSelector: fc.constant("all()"),
      serviceAccounts: fc.record({ names: some(Object.keys(CLIENTS)) }),
    }),
  );
}

function rules(addresses: readonly string[]) {
  const match = fc
    .record({
      source: optional(sources(addresses)),
      destination: optional(
        pick([{ ports: [PORTS.plain] }, { ports: [PORTS.mutualTls] }, { notPorts: [PORTS.plain] }]),
      ),
    })
    .map(defined);
  const ofHttp = fc
    .record({ match, http })
    .map((rule) => ({ action: "Allow", protocol: "TCP", http: rule.http, ...rule.match }));
  const ofPackets = fc
    .record({ match, action: pick(["Allow", "Deny", "Deny", "Pass"]) })
    .map((rule) => ({ action: rule.action, protocol: "TCP", ...rule.match }));
  return fc.array(fc.oneof({ weight: 3, arbitrary: ofHttp }, { weight: 2, arbitrary: ofPackets }), {
    minLength: 1,
    maxLength: 4,
  });
}

/** Those that every round needs. */
export const TIERS: readonly object[] = [
  { apiVersion: API_VERSION, kind: "Tier", metadata: { name: MARKER_TIER }, spec: { order: 1, defaultAction: "Pass" } },
  { apiVersion: API_VERSION, kind: "Tier", metadata: { name: FIRST_TIER }, spec: { order: 2, defaultAction: "Pass" } },
];

/** Two of the namespace and two global ones, half of them in a tier before the default one. */
export function randomPolicies(addresses: readonly string[], seed: number): readonly object[] {
  const [all = []] = fc.sample(
    fc.array(fc.tuple(rules(addresses), fc.integer({ min: 1, max: 3 })), { minLength: 4, maxLength: 4 }),
    {
      seed,
      numRuns: 1,
    },
  );
  return all.map(([ingress, order], index) => {
    const tier = index % 2 === 0 ? FIRST_TIER : "default";
    return policyOf(index < 2 ? "NetworkPolicy" : "GlobalNetworkPolicy", `${tier}.random`, { tier, order, ingress });
  });
}

/** Paths that only a sidecar allows that has seen the policies of this round: each kind is followed by itself. */
export function markerPaths(round: number): readonly string[] {
  return [`/marker/namespace-${round}`, `/marker/global-${round}`];
}

export function markers(round: number): readonly object[] {
  const [ofNamespace = "", global = ""] = markerPaths(round);
  const spec = (exact: string) => ({
    tier: MARKER_TIER,
    order: 1,
    ingress: [{ action: "Allow", protocol: "TCP", http: { paths: [{ exact }] } }],
  });
  return [
    policyOf("NetworkPolicy", `${MARKER_TIER}.round`, spec(ofNamespace)),
    policyOf("GlobalNetworkPolicy", `${MARKER_TIER}.round`, spec(global)),
  ];
}

function policyOf(kind: "NetworkPolicy" | "GlobalNetworkPolicy", name: string, spec: object): object {
  const namespace = kind === "NetworkPolicy" ? { namespace: SHOP } : {};
  const selector = "app == 'web'";
  return {
    apiVersion: API_VERSION,
    kind,
    metadata: { name, ...namespace },
    spec: { selector, types: ["Ingress"], ...spec },
  };
}

const identities = [
  undefined,
  ...Object.entries(CLIENTS).map(([name, { namespace }]) => `${namespace}/${name}`),
  FOREIGN,
];

/** Every client, in plain and with every certificate. */
export const SENDERS: readonly Pick<RandomRequest, "client" | "identity">[] = (
  ["frontend", "batch", "stranger"] as const
).flatMap((client) => identities.map((identity) => ({ client, ...(identity === undefined ? {} : { identity }) })));

export function randomQuestions(count: number, seed: number): readonly Pick<RandomRequest, "method" | "path">[] {
  return fc.sample(fc.record({ method: pick(METHODS), path: pick(REQUESTED) }), { numRuns: count, seed });
}

function defined<Value extends object>(value: Value): Value {
  return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as Value;
}
