/**
 * Random requests to the pods of random clusters (random-cluster.ts), and policies about requests: few names and paths, so
 * that they meet often, and paths and principals that hope to be misread.
 */
import fc from "fast-check";
import type { IncomingRequest } from "../../src/alp/judge/request-judge.ts";
import { identity } from "../../src/identity.ts";
import { type Address, type Family, parseAddress } from "../../src/ip/address.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { type NetworkPolicy, networkPolicy } from "../../src/model/network-policy.ts";
import type { WorkloadEndpoint } from "../../src/model/workload-endpoint.ts";

const pick = <Value>(values: readonly Value[]) => fc.constantFrom(...values);
/** Absent in five of six: with several criteria in most rules hardly a request would match. */
const rare = <Value>(value: fc.Arbitrary<Value>) =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: value });
const optional = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 2 });
const few = <Value>(value: fc.Arbitrary<Value>) => fc.array(value, { minLength: 1, maxLength: 2 });
const parsed = (...texts: readonly string[]) => texts.flatMap((text) => parseAddress(text) ?? []);

const NAMESPACES = ["red", "blue"];
const ACCOUNTS = ["reader", "writer"];
const RED = `${identity.labelPrefix}name == 'red'`;
const labelSelectors = pick(["all()", "has(app)", "app == 'a'", "role in {'a', 'b'}", "!has(role)"]);

const sources = fc
  .record({
    selector: optional(labelSelectors),
    notSelector: optional(pick(["app == 'b'", "has(role)"])),
    namespaceSelector: optional(pick(["all()", "global()", RED, `!(${RED})`, "app == 'a'"])),
    serviceAccounts: optional(
      fc.oneof(
        fc.record({ names: few(pick(ACCOUNTS)) }),
        fc.record({ selector: pick(["all()", "app == 'a'", "app == 'b'"]) }),
      ),
    ),
    nets: rare(few(pick(["10.0.0.0/24", "10.0.0.0/30", "10.0.0.1", "fd00::/64", "::/0", "0.0.0.0/0"]))),
    notNets: rare(few(pick(["10.0.0.2/31", "fd00::1"]))),
    notPorts: rare(few(pick([80, "81:443"]))),
  })
  .map(present);

const sourceServices = fc.record({
  services: fc.record({ name: pick(["web", "dns"]), namespace: pick(NAMESPACES) }),
});

const destinations = fc
  .record({
    ports: optional(few(pick([80, 443, "81:90", "web", "dns"]))),
    notPorts: rare(few(pick([443, "web"]))),
    nets: rare(few(pick(["10.0.0.0/24", "fd00::/64", "0.0.0.0/0"]))),
  })
  .map(present);

const http = fc
  .record({
    methods: optional(few(pick(["GET", "POST", "*"]))),
    paths: optional(
      few(pick([{ exact: "/" }, { exact: "/a" }, { prefix: "/a/" }, { prefix: "/a" }, { prefix: "/b/\u00e9" }])),
    ),
  })
  .map(present);

const allowRules = fc
  .record({
    source: optional(fc.oneof({ weight: 6, arbitrary: sources }, { weight: 1, arbitrary: sourceServices })),
    destination: optional(destinations),
    http: fc.option(http, { nil: undefined, freq: 3 }),
    ipVersion: rare(pick([4, 6] as const)),
  })
  .map((rule) => ({ action: "Allow" as const, protocol: "TCP", ...present(rule) }));

const otherRules = fc
  .record({ action: pick(["Deny", "Pass", "Log"] as const), source: sources, destination: optional(destinations) })
  .map((rule) => ({ protocol: "TCP", ...present(rule) }));

const specs = fc.record({
  tier: pick(["default", "default", "first"]),
  order: pick([0.5, 1, 3]),
  selector: pick(["all()", "all()", "app == 'a'"]),
  ingress: fc.array(fc.oneof({ weight: 4, arbitrary: allowRules }, { weight: 1, arbitrary: otherRules }), {
    minLength: 1,
    maxLength: 5,
  }),
});

export interface RequestPolicies {
  readonly networkPolicies: readonly NetworkPolicy[];
  readonly globalNetworkPolicies: readonly GlobalNetworkPolicy[];
}

/** Their names are not those of a random cluster. */
export const requestPolicies: fc.Arbitrary<RequestPolicies> = fc
  .record({
    namespaced: fc.array(fc.record({ namespace: pick(NAMESPACES), spec: specs }), { maxLength: 2 }),
    global: fc.array(specs, { maxLength: 2 }),
  })
  .map(({ namespaced, global }) => ({
    networkPolicies: namespaced.map(({ namespace, spec }, index) =>
      networkPolicy.make({ name: nameIn(spec.tier, index), namespace }, { ...spec, types: ["Ingress"] } as never),
    ),
    globalNetworkPolicies: global.map((spec, index) =>
      globalNetworkPolicy.make({ name: nameIn(spec.tier, index) }, { ...spec, types: ["Ingress"] } as never),
    ),
  }));

function nameIn(tier: string, index: number): string {
  return tier === "default" ? `requests${index}` : `${tier}.requests${index}`;
}

const identities = fc
  .tuple(pick([...NAMESPACES, "red", "green"]), pick([...ACCOUNTS, "default"]))
  .map(([namespace, account]) => `/ns/${namespace}/sa/${account}`);

const principals = fc.oneof(
  { weight: 5, arbitrary: fc.constant(undefined) },
  { weight: 8, arbitrary: identities.map((path) => `spiffe://cluster.local${path}`) },
  { weight: 2, arbitrary: identities.map((path) => `spiffe://other.example${path}`) },
  {
    weight: 2,
    arbitrary: pick([
      "",
      "CN=reader",
      "reader.red.svc.cluster.local",
      "spiffe://cluster.local/ns/red/sa/reader/",
      "spiffe://cluster.local//ns/red/sa/reader",
      "spiffe://cluster.local/ns/red/sa/read%65r",
      "spiffe://cluster.local/ns/red/sa/reader,spiffe://cluster.local/ns/blue/sa/writer",
      "spiffe://Cluster.Local/ns/red/sa/reader",
      "SPIFFE://cluster.local/ns/red/sa/reader",
      "spiffe://cluster.local@other.example/ns/red/sa/reader",
      "https://cluster.local/ns/red/sa/reader",
    ]),
  },
);

/** Servers read some of these in different ways. */
const PIECES = ["a", "b", ".", "..", "%2e", "%2E%2e", "%2f", "%252f", "%61", "%5c", "\\", "%00", "%zz", "%ff", "..;x"];
const pieces = pick([...PIECES, ";x", "#", "\u00e9", "%c3%a9", "/", "/", "/", "/", "/a", "/a/", "/b"]);
const PLAIN = ["/", "/a", "/a/", "/a/b", "/b", "/b/\u00e9/x", "/A", "/a?b=c", "/?a", "/a/../b", "//a", "/%61", "*"];
const paths = fc.oneof(
  { weight: 4, arbitrary: pick(PLAIN) },
  { weight: 3, arbitrary: fc.array(pieces, { maxLength: 6 }).map((all) => `/${all.join("")}`) },
  { weight: 1, arbitrary: fc.string({ maxLength: 12, unit: "binary" }) },
);

const CLIENTS: Readonly<Record<Family, readonly Address[]>> = {
  4: parsed("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1", "192.0.2.1", "10.9.0.7", "::ffff:10.0.0.2"),
  6: parsed("fd00::1", "fd00::2", "fd00::1:1", "::1", "fd00::ffff"),
};

interface RandomRequest extends Omit<IncomingRequest, "source"> {
  readonly clients: Readonly<Record<Family, Address>>;
  /** Of an address that the pod may not have. */
  readonly family: Family | undefined;
}

export const randomRequests: fc.Arbitrary<RandomRequest> = fc
  .record({
    clients: fc.record({ 4: pick(CLIENTS[4]), 6: pick(CLIENTS[6]) }),
    family: rare(pick([4, 6] as const)),
    sourcePort: pick([80, 81, 443, undefined]),
    principal: principals,
    destinationPort: pick([80, 80, 80, 81, 443, 1_000]),
    http: fc.option(fc.record({ method: pick(["GET", "GET", "POST", "PUT", "get", "*", ""]), path: paths }), {
      nil: undefined,
      freq: 8,
    }),
  })
  .map(({ sourcePort, principal, http: ofHttp, ...others }) => ({
    ...others,
    ...present({ sourcePort, principal, http: ofHttp }),
  }));

/** From an address of a family that the pod has. */
export function requestTo({ spec }: WorkloadEndpoint, { clients, family, ...request }: RandomRequest): IncomingRequest {
  const own: Family = spec.ipNetworks?.[0]?.includes(":") ? 6 : 4;
  return { ...request, source: clients[family ?? own] };
}

export const trustDomains: fc.Arbitrary<string> = pick(["cluster.local", "cluster.local", "other.example", "*"]);

type Present<Fields> = { readonly [Name in keyof Fields]?: Exclude<Fields[Name], undefined> };

/** Without the fields that are absent. */
function present<Fields extends object>(fields: Fields): Present<Fields> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Present<Fields>;
}
