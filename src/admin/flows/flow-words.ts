/** A flow in words and in the cells of tables. What is in a record may be anything: whoever prints it escapes control characters. Pure. */
import type { FlowGroup } from "../../flows/flow-answer.ts";
import { endTitle } from "../../flows/flow-query.ts";
import {
  type FlowDecision,
  type FlowEnd,
  type FlowRecord,
  type StagedFlow,
  UNKNOWN_RULES,
} from "../../flows/flow-record.ts";
import { ICMP_PROTOCOLS } from "../../model/protocols.ts";
import { originTitle, originWords, readRuleComment } from "../../policy/table/rule-comment.ts";

/** As `--from` and `--to` accept it. */
export function endWords(end: FlowEnd): string {
  const title = endTitle(end);
  if (end.name === undefined) return title;
  switch (end.kind) {
    case "host":
      return `node/${title}`;
    case "service":
      return `service/${title}`;
    case "network set":
      return `set/${title}`;
    default:
      return title;
  }
}

/** With the address, which of outside is the title already. */
export function endInFull(end: FlowEnd): string {
  const words = endWords(end);
  const address = withPort(end.address, end.port);
  return words === end.address ? address : `${words} (${address})`;
}

export function withPort(address: string, port: number | undefined): string {
  if (port === undefined) return address;
  return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
}

/** What was asked for, and who answers: `service/shop/db -> shop/db-0`. */
export function destinationWords({ destination, backend }: FlowRecord): string {
  return backend === undefined ? endWords(destination) : `${endWords(destination)} -> ${endWords(backend)}`;
}

/** `5432/tcp`; of ICMP the type: `icmp 8`. */
export function portWords({ protocol, icmp, destination, backend }: FlowRecord): string {
  const name = protocolName(protocol);
  if (ICMP_PROTOCOLS.has(protocol)) return icmp === undefined ? name : `${name} ${icmp.type}`;
  const { port } = destination;
  if (port === undefined) return name;
  const translated = backend?.port === undefined || backend.port === port ? "" : `->${backend.port}`;
  return `${port}${translated}/${name}`;
}

export function groupPort({ protocol, port }: { readonly protocol: number; readonly port?: number }): string {
  return port === undefined ? protocolName(protocol) : `${port}/${protocolName(protocol)}`;
}

const PROTOCOLS: ReadonlyMap<number, string> = new Map([
  [1, "icmp"],
  [6, "tcp"],
  [17, "udp"],
  [58, "icmpv6"],
  [132, "sctp"],
  [136, "udplite"],
]);

export function protocolName(protocol: number): string {
  return PROTOCOLS.get(protocol) ?? `protocol ${protocol}`;
}

/** The decision that a reader looks for: of a denied flow the denial, otherwise the last one of a policy. */
export function decidingOf({ verdict, decisions }: FlowRecord): FlowDecision | undefined {
  if (verdict === "denied") return decisions.findLast((decision) => decision.verdict === "deny") ?? decisions.at(-1);
  const byPolicy = decisions.findLast(({ rule }) => rule !== undefined && readRuleComment(rule).kind === "policy");
  return byPolicy ?? decisions.findLast(({ rule }) => rule !== undefined) ?? decisions.at(-1);
}

/** In few words: `shop/db ingress[0]`. */
export function ruleTitle(comment: string): string {
  const origin = readRuleComment(comment);
  if (origin.kind === "policy") return `${origin.policy} ${origin.direction}[${origin.rule}]`;
  return "direction" in origin ? `${originTitle(origin)}, ${origin.direction}` : originTitle(origin);
}

/** `decision` absent: no point of the node had to decide. Without rule and reason: the user may not see the rule. */
export function decisionTitle(decision: FlowDecision | undefined): string {
  if (decision === undefined) return "unknown: not judged";
  const { rule, unknown } = decision;
  if (rule !== undefined) return ruleTitle(rule);
  return unknown === undefined ? "hidden" : `unknown: ${unknown}`;
}

/** With the point on the way: `workload ingress: allow by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])`. */
export function decisionWords(decision: FlowDecision): string {
  const { point, verdict, rule } = decision;
  return `${point}: ${verdict}${rule === undefined ? ":" : " by"} ${reasonWords(decision)}`;
}

/** The rule that decided, or why none is named. */
export function reasonWords({ rule, unknown, requestsBySidecar }: FlowDecision): string {
  const reason = unknown === undefined ? "you may not list the end that its rules protect" : UNKNOWN_RULES[unknown];
  const why = rule === undefined ? reason : originWords(readRuleComment(rule));
  return requestsBySidecar === true ? `${why}; the sidecar decides about each request` : why;
}

/** `denied: workload ingress: deny by NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])`. */
export function stagedWords({ verdict, decisions }: StagedFlow): string {
  const denial = decisions.find((decision) => decision.verdict === "deny");
  const shown = verdict === "denied" && denial !== undefined ? [denial] : decisions;
  return [verdict, ...shown.map(decisionWords)].join(": ");
}

/** As `--from` accepts it, without the kind of what owns the pods. */
export function groupWords({ kind, namespace, name }: FlowGroup): string {
  if (name === undefined) return kind;
  const title = namespace === undefined ? name : `${namespace}/${name}`;
  const prefix = { host: "node/", service: "service/", "network set": "set/" }[kind as string] ?? "";
  return `${prefix}${title}`;
}

const UNITS = ["B", "kB", "MB", "GB", "TB", "PB"];

/** Three digits at least: `999 B`, `1.23 kB`, `45.6 MB`. */
export function byteWords(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 1_000 && unit < UNITS.length - 1; unit++) value /= 1_000;
  const digits = unit === 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

/** `350 ms`, `12.3 s`, `4 min 5 s`, `2 h 10 min`. */
export function durationWords(milliseconds: number): string {
  if (milliseconds < 1_000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(milliseconds / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((milliseconds % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}
