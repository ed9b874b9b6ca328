/** What the agents of a cluster say of BGP sessions, tunnels and routes of their nodes, and of when it is. Pure. */
import { counted } from "../../counted.ts";
import { identity } from "../../identity.ts";
import type { Node } from "../../model/node.ts";
import { type DownSession, ROUTING_STATE_ANNOTATION, readRoutingState } from "../../model/routing-state.ts";
import { quoted } from "../../quote.ts";
import type { ClusterNode } from "../cluster/nodes.ts";
import type { StatusFacts } from "./facts.ts";
import type { StatusFinding } from "./finding.ts";

/** `AS 64512, 3 of 4 sessions established`; empty if nothing is known of BGP. `asOf`: it may be another now. */
export function bgpWords({ metadata, spec: { bgp } }: Node, asOf?: Date): string {
  const state = readRoutingState(metadata.annotations);
  const { sessions } = typeof state === "object" ? state : {};
  return [
    ...(bgp?.asNumber === undefined ? [] : [`AS ${bgp.asNumber}`]),
    ...(sessions === undefined
      ? []
      : [`${sessions.established} of ${counted(sessions.wanted, "session")} established${asOfText(asOf)}`]),
  ].join(", ");
}

/** When the agent wrote what is known of a node if it does not run now; `undefined`: what is known is of now. */
export function routingAsOf(record: Node, node: ClusterNode, facts: StatusFacts): Date | undefined {
  return mayRun(node, facts) ? undefined : routingWrittenAt(record);
}

/** `undefined`: nothing is known. */
export function routingWrittenAt({ metadata }: Node): Date | undefined {
  const state = readRoutingState(metadata.annotations);
  return typeof state === "object" ? new Date(state.at) : undefined;
}

/** Agents that are no pods, or that the reader may not see, count as running as long as the node is ready. */
function mayRun({ name, isReady }: ClusterNode, { agents, agentPods, unseen }: StatusFacts): boolean {
  if (!isReady) return false;
  if (agents === undefined || unseen?.has("agent pods") === true) return true;
  return agentPods.some((pod) => pod.node === name && pod.isReady);
}

function asOfText(asOf: Date | undefined): string {
  return asOf === undefined ? "" : ` (as of ${timeText(asOf)})`;
}

function timeText(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, "Z");
}

/** `record`: absent if it cannot be seen. */
export function routingFindings(
  node: ClusterNode,
  record: Node | undefined,
  facts: StatusFacts,
): readonly StatusFinding[] {
  const state = readRoutingState(record?.metadata.annotations);
  if (record === undefined || state === undefined) return [];
  const subject = `node ${node.name}`;
  if (state === "unreadable") {
    const message = `what the annotation ${quoted(ROUTING_STATE_ANNOTATION)} says of its BGP sessions and tunnels cannot be read, and does not count; a running ${identity.nodeAgent} replaces it within a minute`;
    const remedy = `kubectl annotate node ${node.name} ${ROUTING_STATE_ANNOTATION}-`;
    return [{ state: "warning", subject, message, ...(facts.datastore.kind === "kubernetes" ? { remedy } : {}) }];
  }
  const asOf = routingAsOf(record, node, facts);
  const old = asOf === undefined ? "" : `; as of ${timeText(asOf)}, its ${identity.nodeAgent} does not run now`;
  const remedy = `run on the node: ${identity.adminTool} node status`;
  const { wanted, established } = state.sessions ?? { wanted: 0, established: 0 };
  const isNone = established === 0;
  const ofSessions =
    wanted === established
      ? []
      : [{ state: isNone ? "failed" : "warning", message: sessionsText(state.down, { wanted, established }) } as const];
  return [...state.problems, ...ofSessions].map((found) => ({
    ...{ state: found.state, subject, message: `${found.message}${old}`, remedy },
  }));
}

function sessionsText(
  down: readonly DownSession[],
  { wanted, established }: { readonly wanted: number; readonly established: number },
): string {
  const count = wanted - established;
  const left = count - down.length;
  const named = [...down.map(sessionText), ...(left > 0 && down.length > 0 ? [`and ${left} more`] : [])];
  const all = `${count} of ${counted(wanted, "BGP session")} ${count === 1 ? "is" : "are"} not established`;
  return named.length === 0 ? all : `${all}: ${named.join("; ")}`;
}

/** `10.0.0.9 (AS 64513, router) is Active since 2026-01-02T03:04:05Z, Socket: Connection refused` */
function sessionText({ address, asNumber, peer, state, since, lastError }: DownSession): string {
  const error = lastError === undefined ? "" : `, last error: ${lastError}`;
  return `${address} (AS ${asNumber}, ${peer}) is ${state}, down since ${timeText(new Date(since))}${error}`;
}
