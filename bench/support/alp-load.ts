/**
 * The policies of one pod for the benchmark of application layer policy, as the node agent sends them to the sidecar and as
 * Felix sends them to Calico's: rules that each allow the clients of one selector to read one resource. The last rule decides
 * the request that is measured. Pure.
 */
import type { SidecarRule, SidecarUpdate } from "../../src/alp/protocol/sidecar-state.ts";

export interface AlpLoad {
  readonly title: string;
  readonly rules: number;
  /** How many selectors the rules have: each is a set of addresses. */
  readonly sets: number;
  readonly addressesPerSet: number;
}

/** A request, and whether the policies allow it. */
export interface Probe {
  readonly method: string;
  readonly path: string;
  /** The address of the client. */
  readonly source: string;
  readonly isAllowed: boolean;
}

/** Of the client that is measured, and of one that no rule knows. */
export const CLIENT = "127.0.0.1";
const STRANGER = "127.0.0.9";
export const POD = "127.0.0.1";
const NAMESPACE = "shop";
const ACCOUNTS = ["default", "cart", "frontend"];
const RULES_PER_POLICY = 10;

/** As every load decides them: by the last rule, by others, and by the default of the tier. */
export function probesOf(load: AlpLoad): readonly Probe[] {
  const last = requestOf(load, load.rules - 1);
  const resource = `/api/resource-${load.rules - 1}`;
  return [
    { method: "GET", path: last, source: CLIENT, isAllowed: true },
    { method: "GET", path: `${last}?page=2`, source: CLIENT, isAllowed: true },
    { method: "POST", path: last, source: CLIENT, isAllowed: false },
    { method: "GET", path: resource, source: CLIENT, isAllowed: false },
    { method: "GET", path: "/api/unknown", source: CLIENT, isAllowed: false },
    { method: "GET", path: last, source: STRANGER, isAllowed: false },
    ...(load.rules < 3
      ? []
      : [
          { method: "GET", path: requestOf(load, load.rules - 3), source: CLIENT, isAllowed: true },
          { method: "GET", path: requestOf(load, load.rules - 2), source: CLIENT, isAllowed: false },
        ]),
  ];
}

/** The whole state, as the first update of a sidecar. */
export function ownUpdate(load: AlpLoad): SidecarUpdate {
  const policies = policiesOf(load);
  const sets = setsOf(load).map(({ name, members }) => [name, { members }] as const);
  return {
    type: "update",
    revision: 1,
    addresses: [POD],
    evaluation: {
      tiers: [{ name: "default", defaultAction: "Deny", policies: policies.map(({ name }) => name) }],
      profiles: [{ index: 0, action: "Allow", source: {}, destination: {} }],
    },
    policies: Object.fromEntries(
      policies.map(({ name, rules }) => [
        name,
        { title: `${NAMESPACE}/${name}`, rules: rules.map((rule, index) => ownRule(load, rule, index)) },
      ]),
    ),
    sets: Object.fromEntries([
      ...sets,
      ["accounts", { members: ACCOUNTS.map((account) => `${NAMESPACE}/${account}`) }],
    ]),
  };
}

/** Messages of Calico's policy sync API, in the order in which Felix sends them. */
export function peerMessages(load: AlpLoad): readonly object[] {
  const policies = policiesOf(load);
  const nameOf = (name: string) => `${NAMESPACE}/default.${name}`;
  const profile = `kns.${NAMESPACE}`;
  const endpoint = {
    state: "active",
    name: "cali12345678901",
    profileIds: [profile],
    ipv4Nets: [`${POD}/32`],
    tiers: [{ name: "default", ingressPolicies: policies.map(({ name }) => nameOf(name)), defaultAction: "Deny" }],
  };
  return [
    ...setsOf(load).map(({ name, members }) => ({
      ipsetUpdate: { id: name, type: "NET", members: members.map((member) => `${member}/32`) },
    })),
    ...policies.map(({ name, rules }) => ({
      activePolicyUpdate: {
        id: { tier: "default", name: nameOf(name) },
        policy: { namespace: NAMESPACE, inboundRules: rules.map((rule) => peerRule(load, rule)) },
      },
    })),
    { activeProfileUpdate: { id: { name: profile }, profile: { inboundRules: [{ action: "allow" }] } } },
    { namespaceUpdate: { id: { name: NAMESPACE }, labels: { team: NAMESPACE } } },
    ...ACCOUNTS.map((name) => ({ serviceAccountUpdate: { id: { namespace: NAMESPACE, name }, labels: {} } })),
    {
      workloadEndpointUpdate: {
        id: { orchestratorId: "k8s", workloadId: `${NAMESPACE}/cart`, endpointId: "eth0" },
        endpoint,
      },
    },
    { inSync: {} },
  ];
}

/** Names and the numbers of their rules. */
function policiesOf({ rules }: AlpLoad): readonly { readonly name: string; readonly rules: readonly number[] }[] {
  return numbersTo(Math.ceil(rules / RULES_PER_POLICY)).map((policy) => ({
    name: `resources-${policy}`,
    rules: numbersTo(Math.min(RULES_PER_POLICY, rules - policy * RULES_PER_POLICY)).map(
      (rule) => policy * RULES_PER_POLICY + rule,
    ),
  }));
}

function ownRule(load: AlpLoad, rule: number, index: number): SidecarRule {
  return {
    index,
    action: "Allow",
    source: { sets: [setName(setOf(load, rule))], identities: "accounts" },
    destination: {},
    http: { methods: ["GET"], paths: [pathOf(load, rule)] },
  };
}

function peerRule(load: AlpLoad, rule: number): object {
  return {
    action: "allow",
    protocol: { name: "tcp" },
    srcIpSetIds: [setName(setOf(load, rule))],
    originalSrcSelector: `app == 'client-${setOf(load, rule)}'`,
    httpMatch: { methods: ["GET"], paths: [pathOf(load, rule)] },
    ruleId: `rule-${rule}`,
  };
}

/** The last rule has a prefix, as every third one. */
function pathOf({ rules }: AlpLoad, rule: number): { readonly prefix: string } | { readonly exact: string } {
  const resource = `/api/resource-${rule}`;
  return (rules - 1 - rule) % 3 === 0 ? { prefix: `${resource}/` } : { exact: resource };
}

function requestOf(load: AlpLoad, rule: number): string {
  const path = pathOf(load, rule);
  return "exact" in path ? path.exact : `${path.prefix}items/42`;
}

/** The last rule has the last set. */
function setOf({ rules, sets }: AlpLoad, rule: number): number {
  return sets - 1 - ((rules - 1 - rule) % sets);
}

/** The client is in the set of the last rule, and in every second one. */
function setsOf({ sets, addressesPerSet }: AlpLoad): readonly { readonly name: string; readonly members: string[] }[] {
  return numbersTo(sets).map((set) => {
    const others = numbersTo(addressesPerSet - 1).map((member) => addressOf(set * addressesPerSet + member));
    const isOfClient = (sets - 1 - set) % 2 === 0;
    return {
      name: setName(set),
      members: [...others, isOfClient ? CLIENT : addressOf((set + 1) * addressesPerSet - 1)],
    };
  });
}

function setName(set: number): string {
  return `s:client-${set}`;
}

function addressOf(number: number): string {
  return `10.${64 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
}

function numbersTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, number) => number);
}
