/**
 * Filters of flows: the fields of `FlowQuery` are parameters of the address of the view. Besides them there are `range`, a time
 * that goes along with the clock, `order`, and `flow`, the one that is open. Pure.
 */
import {
  endTitle,
  FLOW_QUERY_FIELDS,
  type FlowQuery,
  FlowQueryError,
  readFlowQuery,
  STAGED_VERDICTS,
} from "../../../flows/flow-query.ts";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import { parsePrefixOrAddress } from "../../../ip/prefix.ts";
import { PROTOCOL_NAMES } from "../../../model/protocols.ts";

export const RANGES = [
  { name: "5m", words: "Last 5 minutes", milliseconds: 300_000 },
  { name: "15m", words: "Last 15 minutes", milliseconds: 900_000 },
  { name: "1h", words: "Last hour", milliseconds: 3_600_000 },
  { name: "6h", words: "Last 6 hours", milliseconds: 21_600_000 },
  { name: "24h", words: "Last 24 hours", milliseconds: 86_400_000 },
] as const;

/** Without a time: so many, and what comes. */
export const NEWEST = 1_000;

export interface ReadFilters {
  readonly query: FlowQuery;
  /** Whether new flows are asked for: not if the time ends. */
  readonly follows: boolean;
}

type Parameters = Readonly<Record<string, string>>;

/** Throws `FlowQueryError`. */
export function readFilters(parameters: Parameters, now: number): ReadFilters {
  const given = Object.entries(parameters).filter(([name]) => FLOW_QUERY_FIELDS.includes(name));
  const query = readFlowQuery(new URLSearchParams(given));
  const range = parameters["range"];
  if (range === undefined) {
    const isTimed = query.since !== undefined || query.until !== undefined || query.last !== undefined;
    return { query: isTimed ? query : { ...query, last: NEWEST }, follows: query.until === undefined };
  }
  const { milliseconds } = RANGES.find(({ name }) => name === range) ?? {};
  if (milliseconds === undefined)
    throw new FlowQueryError("range", `"${range}" is not a range; use ${RANGES.map(({ name }) => name).join(", ")}`);
  return { query: { ...query, since: now - milliseconds }, follows: true };
}

/** What changes the answer: another one is asked for. */
export function filterKey(parameters: Parameters): string {
  const { flow: _, order: __, ...filters } = parameters;
  return JSON.stringify(Object.entries(filters).toSorted());
}

/** Fields that are typed, in the order in which they are offered. */
export const TYPED_FIELDS = [
  "pod",
  "namespace",
  "from",
  "to",
  "port",
  "label",
  "policy",
  "node",
  "protocol",
  "staged",
] as const satisfies readonly (keyof FlowQuery)[];
export type TypedField = (typeof TYPED_FIELDS)[number];

export const FIELD_HINTS: Readonly<Record<TypedField, string>> = {
  pod: "either end: NAMESPACE/NAME, NAME*",
  namespace: "of either end",
  from: "pod, address, network, node/…, outside",
  to: "pod, address, network, service/…, set/…",
  port: "of the destination",
  label: "key=value of either end",
  policy: "that decided",
  node: "that has seen it",
  protocol: "tcp, udp, icmp …",
  staged: "what staged policies would decide",
};

export interface Filter {
  readonly field: TypedField;
  readonly value: string;
}

export function filtersIn(parameters: Parameters): readonly Filter[] {
  return TYPED_FIELDS.flatMap((field) => {
    const value = parameters[field];
    return value === undefined ? [] : [{ field, value }];
  });
}

const MOST_SUGGESTIONS = 9;

/** `field=value` and `field:value` are one filter; other words could be several. Values that flows have come first. */
export function suggestedFilters(text: string, records: readonly FlowRecord[]): readonly Filter[] {
  const typed = text.trim();
  if (typed === "") return [];
  const [, name, rest = ""] = /^(\w+)\s*[=:]\s*(.*)$/s.exec(typed) ?? [];
  const field = TYPED_FIELDS.find((each) => each === name);
  if (field !== undefined) return suggestionsFor(field, rest, records).slice(0, MOST_SUGGESTIONS);
  const fields = fieldsFor(typed);
  const known = fields.flatMap((each) =>
    valuesOf(each, records)
      .filter((value) => isIn(value, typed))
      .slice(0, 2)
      .map((value) => ({ field: each, value })),
  );
  const asTyped = fields.map((each) => ({ field: each, value: typed }));
  const exact = known.filter(({ value }) => value === typed);
  return unique([...exact, ...known, ...asTyped]).slice(0, MOST_SUGGESTIONS);
}

function suggestionsFor(field: TypedField, value: string, records: readonly FlowRecord[]): readonly Filter[] {
  const known = valuesOf(field, records).filter((each) => isIn(each, value));
  return unique([...(value === "" ? [] : [value]), ...known].map((each) => ({ field, value: each })));
}

function fieldsFor(typed: string): readonly TypedField[] {
  if (/^\d{1,5}$/.test(typed)) return ["port", "pod"];
  if (PROTOCOL_NAMES.includes(typed.toLowerCase())) return ["protocol", "pod"];
  if (parsePrefixOrAddress(typed) !== undefined || typed === "outside") return ["from", "to"];
  if (/^[\w./-]+=[\w.-]*$/.test(typed)) return ["label"];
  return ["pod", "namespace", "from", "to", "policy", "node"];
}

/** Of so many of the newest flows. */
const LOOKED_AT = 2_000;

function valuesOf(field: TypedField, records: readonly FlowRecord[]): readonly string[] {
  const values = new Set<string>();
  for (const record of records.slice(-LOOKED_AT)) for (const value of valuesIn(field, record)) values.add(value);
  return [...values].toSorted();
}

function valuesIn(field: TypedField, { source, destination, backend, node }: FlowRecord): readonly string[] {
  const target = backend ?? destination;
  switch (field) {
    case "pod":
      return [source, target].filter(({ kind }) => kind === "pod" || kind === "container").map(endTitle);
    case "namespace":
      return [source, target].flatMap(({ namespace }) => (namespace === undefined ? [] : [namespace]));
    case "from":
      return source.kind === "pod" || source.kind === "container" ? [endTitle(source)] : [source.address];
    case "to":
      return target.kind === "pod" || target.kind === "container" ? [endTitle(target)] : [target.address];
    case "port":
      return target.port === undefined ? [] : [String(target.port)];
    case "label":
      return Object.entries(target.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    case "node":
      return [node];
    case "protocol":
      return PROTOCOL_NAMES;
    case "staged":
      return STAGED_VERDICTS;
    case "policy":
      return [];
  }
}

function isIn(value: string, text: string): boolean {
  return value.toLowerCase().includes(text.toLowerCase());
}

function unique(filters: readonly Filter[]): readonly Filter[] {
  return [...new Map(filters.map((filter) => [`${filter.field}=${filter.value}`, filter])).values()];
}
