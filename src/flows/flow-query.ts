/**
 * Which flows somebody asks for. The same fields are options of `vendorctl flows`, parameters of the API, and what a node gets
 * asked. Pure.
 */
import * as v from "valibot";
import { type Address, parseAddress } from "../ip/address.ts";
import { parsePrefixOrAddress, prefixContains } from "../ip/prefix.ts";
import { CLUSTER_POLICY, clusterPolicyName } from "../model/cluster-network-policy.ts";
import { ORCHESTRATOR_POLICY } from "../model/orchestrator-policy.ts";
import { PROTOCOL_NAMES, protocolNumber } from "../model/protocols.ts";
import { endOfShortened, isNameOf, readRuleComment } from "../policy/table/rule-comment.ts";
import { quoted, shortName } from "../quote.ts";
import type { FlowEnd, FlowRecord } from "./flow-record.ts";

const wholeNumber = v.pipe(
  v.string(),
  v.regex(/^\d{1,15}$/, ({ input }) => `${quoted(input)} is not a number; use a whole number of at least 0`),
  v.transform(Number),
);
const portNumber = v.pipe(
  wholeNumber,
  v.maxValue(65_535, ({ input }) => `${input} is not a port; use a number from 0 to 65535`),
);
/** So many are kept in memory, by who sorts the answers of many nodes. */
const MOST_LAST = 10_000;
const VERDICTS = ["allowed", "denied", "unknown"] as const;
export const STAGED_VERDICTS = ["allowed", "denied", "depends"] as const;

export const flowQuerySchema = v.strictObject({
  /** Milliseconds since 1970: flows that ended, or are open, at this time or later. */
  since: v.exactOptional(wholeNumber),
  until: v.exactOptional(wholeNumber),
  /** Only the newest ones. */
  last: v.exactOptional(
    v.pipe(
      wholeNumber,
      v.maxValue(MOST_LAST, ({ input }) => `${input} flows are too many; use at most ${MOST_LAST}, or "since"`),
    ),
  ),
  /** Either end. `NAMESPACE/NAME` or `NAME`; a name may end with "*". */
  pod: v.exactOptional(v.string()),
  namespace: v.exactOptional(v.string()),
  /** `key=value`, `key`, several with commas: one end has them all. */
  label: v.exactOptional(v.string()),
  /**
   * As `pod`, or an address, a network in CIDR notation, `node/NAME`, `service/NAMESPACE/NAME`, `set/NAME`,
   * `set/NAMESPACE/NAME`, `outside`.
   */
  from: v.exactOptional(v.string()),
  to: v.exactOptional(v.string()),
  /** Of the destination, before or after translation. */
  port: v.exactOptional(portNumber),
  /** A name (`tcp`) or a number. */
  protocol: v.exactOptional(v.string()),
  verdict: v.exactOptional(
    v.picklist(VERDICTS, ({ input }) => `${quoted(input)} is not a verdict; use ${listed(VERDICTS)}`),
  ),
  /** What staged policies would decide. */
  staged: v.exactOptional(
    v.picklist(
      STAGED_VERDICTS,
      ({ input }) => `${quoted(input)} is not a verdict of staged policies; use ${listed(STAGED_VERDICTS)}`,
    ),
  ),
  /** `NAMESPACE/NAME` or `NAME`: it decided at one of the points. */
  policy: v.exactOptional(v.string()),
  node: v.exactOptional(v.string()),
  id: v.exactOptional(v.string()),
});
export type FlowQuery = Readonly<v.InferOutput<typeof flowQuerySchema>>;
export type FlowQueryField = keyof FlowQuery;
export const FLOW_QUERY_FIELDS = Object.keys(flowQuerySchema.entries);

/** What one reader may list. */
export interface Sight {
  /** Pods of all namespaces: with it, everything about workloads and sets is visible. */
  readonly everyPod: boolean;
  readonly nodes: boolean;
  /** Namespaces whose pods. */
  readonly podsOf: ReadonlySet<string>;
}

/** Names the field, its value, and what it may be. */
export class FlowQueryError extends Error {
  constructor(
    /** Of `FlowQuery`, or what was given in place of one. */
    readonly field: string,
    /** Without the field, which is an option in one place and a parameter in another. */
    readonly problem: string,
  ) {
    super(`Cannot use "${shortName(field)}": ${problem}`);
  }
}

/** Throws `FlowQueryError`. */
export function readFlowQuery(parameters: URLSearchParams): FlowQuery {
  const given: Record<string, string> = {};
  for (const [name, value] of parameters) {
    if (Object.hasOwn(given, name)) throw new FlowQueryError(name, "it is given twice; give it once");
    if (!FLOW_QUERY_FIELDS.includes(name))
      throw new FlowQueryError(name, `no such field; use one of ${listed(FLOW_QUERY_FIELDS)}`);
    given[name] = value;
  }
  const read = v.safeParse(flowQuerySchema, given);
  if (!read.success) {
    const [{ path, message }] = read.issues;
    throw new FlowQueryError(String(path?.[0]?.key ?? ""), message);
  }
  matcherOf(read.output);
  return read.output;
}

/** The other way round. */
export function parametersOf(query: FlowQuery): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) parameters.set(name, String(value));
  return parameters;
}

export type FlowMatcher = (record: FlowRecord) => boolean;

/** Of all fields but `last`, which is no property of a record. Throws `FlowQueryError`. */
export function matcherOf(query: FlowQuery): FlowMatcher {
  const tests: FlowMatcher[] = [];
  const add = <Value>(value: Value | undefined, testOf: (value: Value) => FlowMatcher) => {
    if (value !== undefined) tests.push(testOf(value));
  };
  add(query.id, (id) => (record) => record.id === id);
  add(query.node, (node) => (record) => record.node === node);
  add(query.verdict, (verdict) => (record) => record.verdict === verdict);
  add(query.staged, (verdict) => (record) => record.staged?.verdict === verdict);
  add(
    query.since,
    (since) =>
      ({ state, end }) =>
        state === "open" || end >= since,
  );
  add(
    query.until,
    (until) =>
      ({ start }) =>
        start <= until,
  );
  add(query.protocol, (text) => {
    const wanted = protocolOf(text);
    return ({ protocol }) => protocol === wanted;
  });
  add(
    query.port,
    (port) =>
      ({ destination, backend }) =>
        destination.port === port || backend?.port === port,
  );
  add(query.namespace, (name) => either((end) => end.namespace === name));
  add(query.pod, (text) => either(podTest("pod", text)));
  add(query.label, (text) => either(labelTest(text)));
  add(query.from, (text) => {
    const test = endTest("from", text);
    return ({ source, seenAs }) => test(source) || (seenAs !== undefined && test({ kind: "hidden", ...seenAs }));
  });
  add(query.to, (text) => {
    const test = endTest("to", text);
    return ({ destination, backend }) => test(destination) || (backend !== undefined && test(backend));
  });
  add(query.policy, (text) => {
    const decides = policyTest(text);
    return ({ decisions }) => decisions.some(({ rule }) => rule !== undefined && decides(rule));
  });
  return (record) => tests.every((test) => test(record));
}

type EndTest = (end: FlowEnd) => boolean;

function either(test: EndTest): FlowMatcher {
  return ({ source, destination, backend }) =>
    test(source) || test(destination) || (backend !== undefined && test(backend));
}

const NAME_RULE = 'use "NAMESPACE/NAME" or "NAME", which may end with "*"';
// The name of a namespace has no dots: an address out of range is not taken for one.
const NAME_PATTERN = /^(?:([\w-]+)\/)?([\w.-]*\*|[\w.-]+)$/;

interface NamePattern {
  readonly namespace: string | undefined;
  matches(name: string): boolean;
}

function namePattern(field: FlowQueryField, text: string, rule = NAME_RULE): NamePattern {
  const [, namespace, name] = NAME_PATTERN.exec(text) ?? [];
  if (name === undefined) throw new FlowQueryError(field, `${quoted(text)} is not a name; ${rule}`);
  const beginning = name.endsWith("*") ? name.slice(0, -1) : undefined;
  return {
    namespace,
    matches: (other) => (beginning === undefined ? other === name : other.startsWith(beginning)),
  };
}

function nameTest(kinds: readonly FlowEnd["kind"][], pattern: NamePattern): EndTest {
  return ({ kind, namespace, name }) =>
    kinds.includes(kind) &&
    name !== undefined &&
    (pattern.namespace === undefined || pattern.namespace === namespace) &&
    pattern.matches(name);
}

function podTest(field: FlowQueryField, text: string): EndTest {
  return nameTest(["pod", "container"], namePattern(field, text));
}

const END_RULE =
  'use "NAMESPACE/POD", "POD", an address, a network such as 10.0.0.0/8, "node/NAME", "service/NAMESPACE/NAME", "set/NAME" or "outside"';

function endTest(field: FlowQueryField, text: string): EndTest {
  if (text === "outside") return ({ kind }) => kind === "outside";
  const [, prefix, rest = ""] = /^(node|service|set)\/(.*)$/.exec(text) ?? [];
  if (prefix === "node") return nameTest(["host"], namePattern(field, rest, END_RULE));
  if (prefix === "service") return nameTest(["service"], namePattern(field, rest, END_RULE));
  if (prefix === "set") return nameTest(["network set"], namePattern(field, rest, END_RULE));
  const network = parsePrefixOrAddress(text);
  if (network === undefined) return nameTest(["pod", "container"], namePattern(field, text, END_RULE));
  return ({ address }) => {
    const parsed: Address | undefined = parseAddress(address);
    return parsed !== undefined && prefixContains(network, parsed);
  };
}

const LABEL_PATTERN = /^([\w./-]+)(?:==?([\w.-]*))?$/;

/** One end has them all. */
function labelTest(text: string): EndTest {
  const wanted = text.split(",").map((part) => {
    const [, key, value] = LABEL_PATTERN.exec(part.trim()) ?? [];
    if (key === undefined)
      throw new FlowQueryError(
        "label",
        `${quoted(part)} is not a label; use "key=value" or "key", several with commas`,
      );
    return { key, value };
  });
  return ({ labels }) =>
    labels !== undefined &&
    wanted.every(({ key, value }) => Object.hasOwn(labels, key) && (value === undefined || labels[key] === value));
}

function protocolOf(text: string): number {
  const number = /^\w+$/.test(text) ? protocolNumber(text) : undefined;
  if (number !== undefined && number >= 0 && number <= 255) return number;
  throw new FlowQueryError(
    "protocol",
    `${quoted(text)} is not a protocol; use ${listed(PROTOCOL_NAMES)} or a number from 0 to 255`,
  );
}

/** Whether a rule is of this policy. A policy of the orchestrator may be named as the orchestrator names it. */
function policyTest(text: string): (comment: string) => boolean {
  const pattern = namePattern("policy", text);
  return (comment) => {
    const origin = readRuleComment(comment);
    if (origin.kind !== "policy") return false;
    const { policy } = origin;
    const end = endOfShortened(policy);
    if (end !== undefined) return text.includes("/") ? isOneOf(policy, text) : text.endsWith(end);
    const slash = policy.indexOf("/");
    const namespace = slash < 0 ? undefined : policy.slice(0, slash);
    const name = policy.slice(slash + 1);
    if (pattern.namespace !== undefined && pattern.namespace !== namespace) return false;
    const isOfOrchestrator = namespace !== undefined && name.startsWith(ORCHESTRATOR_POLICY);
    const authored = isOfOrchestrator
      ? name.slice(ORCHESTRATOR_POLICY.length)
      : namespace === undefined
        ? clusterPolicyName(name)
        : undefined;
    return pattern.matches(name) || (authored !== undefined && pattern.matches(authored));
  };
}

/** Of a policy with a very long name, whose beginning is only a digest. */
function isOneOf(policy: string, text: string): boolean {
  const authored = text.includes("/") ? text.replace("/", `/${ORCHESTRATOR_POLICY}`) : `${CLUSTER_POLICY}${text}`;
  return isNameOf(policy, text) || isNameOf(policy, authored);
}

function listed(words: readonly string[]): string {
  return `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

/** Every name that the end can be asked for by. */
export function endTitle({ kind, namespace, name, address }: FlowEnd): string {
  if (name === undefined || kind === "outside" || kind === "hidden") return address;
  return namespace === undefined ? name : `${namespace}/${name}`;
}
