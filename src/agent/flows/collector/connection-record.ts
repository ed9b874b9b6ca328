/** A followed connection as a record. Pure. */
import { serviceKey } from "../../../flows/collector-messages.ts";
import type { FlowDecision, FlowEnd, FlowRecord, Point, UnknownRule } from "../../../flows/flow-record.ts";
import { type ConnectionStore, MARK } from "./connection-store.ts";
import { type AddressTexts, type Asking, type EndNames, type NamedEnd, OUTSIDE } from "./end-names.ts";
import type { LabelMeaning } from "./rule-decisions.ts";

const ICMP: ReadonlySet<number> = new Set([1, 58]);
const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 33, 132, 136]);
/** The four addresses of a row. */
const ADDRESS = { source: 0, destination: 1, replySource: 2, replyDestination: 3 } as const;

export function hasPorts(protocol: number): boolean {
  return WITH_PORTS.has(protocol);
}

/** Of a connection of this row, without names of its ends. */
export interface Row {
  readonly store: ConnectionStore;
  readonly row: number;
}

/** Somebody else than who was asked answers. */
function isForwarded({ store, row }: Row): boolean {
  if (!store.isSameAddress(row, ADDRESS.destination, ADDRESS.replySource)) return true;
  return hasPorts(store.protocols[row] ?? 0) && destinationPort(store, row) !== replySourcePort(store, row);
}

/** The destination sees another source. */
function isMasqueraded({ store, row }: Row): boolean {
  if (!store.isSameAddress(row, ADDRESS.source, ADDRESS.replyDestination)) return true;
  return hasPorts(store.protocols[row] ?? 0) && sourcePort(store, row) !== replyDestinationPort(store, row);
}

/**
 * Looks up the names of the ends and keeps them with the row. Returns whether all are known; what is not known stays as it was,
 * at first outside. `asking`: whether the agent may be asked.
 */
export function nameEnds(
  { store, row }: Row,
  { names, texts, now, asking }: { names: EndNames; texts: AddressTexts; now: number; asking: Asking },
): boolean {
  const find = (key: string) => names.find(key, now, asking);
  const text = (which: number) => texts.of(store.family, store.addresses, store.addressAt(row, which));
  const source = find(text(ADDRESS.source));
  const destination = find(text(ADDRESS.destination));
  store.sources[row] = source ?? store.sources[row] ?? OUTSIDE;
  store.destinations[row] = destination ?? store.destinations[row] ?? OUTSIDE;
  if (!isForwarded({ store, row })) return source !== undefined && destination !== undefined;
  const key = serviceKey(text(ADDRESS.destination), store.protocols[row] ?? 0, destinationPort(store, row));
  const [service, backend] = [find(key), find(text(ADDRESS.replySource))];
  store.backends[row] = backend ?? store.backends[row] ?? OUTSIDE;
  if (service?.shown.kind === "service") store.destinations[row] = service;
  return (
    source !== undefined &&
    backend !== undefined &&
    service !== undefined &&
    (isService(service) || destination !== undefined)
  );
}

function isService({ shown }: NamedEnd): boolean {
  return shown.kind === "service";
}

export interface RecordContext {
  readonly node: string;
  readonly texts: AddressTexts;
  readonly meaning: LabelMeaning;
  readonly id: string;
  /** That an earlier collector knew. */
  readonly formerDecisions: readonly FlowDecision[] | undefined;
  readonly relatedTo: string | undefined;
}

export function recordOf({ store, row }: Row, context: RecordContext): FlowRecord {
  const { id, node, texts, meaning, formerDecisions, relatedTo } = context;
  const protocol = store.protocols[row] ?? 0;
  const marks = store.marks[row] ?? 0;
  const withPorts = hasPorts(protocol);
  const text = (which: number) => texts.of(store.family, store.addresses, store.addressAt(row, which));
  const end = (named: NamedEnd | undefined, which: number, port: number): FlowEnd => ({
    ...(named ?? OUTSIDE).shown,
    address: text(which),
    ...(withPorts ? { port } : {}),
  });
  const typeAndCode = destinationPort(store, row);
  return {
    id,
    node,
    family: store.family,
    protocol,
    ...(ICMP.has(protocol) ? { icmp: { type: typeAndCode >> 8, code: typeAndCode & 0xff } } : {}),
    source: end(store.sources[row], ADDRESS.source, sourcePort(store, row)),
    destination: end(store.destinations[row], ADDRESS.destination, typeAndCode),
    ...(isForwarded({ store, row })
      ? { backend: end(store.backends[row], ADDRESS.replySource, replySourcePort(store, row)) }
      : {}),
    ...(isMasqueraded({ store, row })
      ? {
          seenAs: {
            address: text(ADDRESS.replyDestination),
            ...(withPorts ? { port: replyDestinationPort(store, row) } : {}),
          },
        }
      : {}),
    direction: directionOf(store, row, meaning),
    // The kernel enters a connection into its table after the last rule has accepted the packet.
    verdict: "allowed",
    decisions: decisionsOf({ store, row }, meaning, formerDecisions),
    state: (marks & MARK.hasEnded) === 0 ? "open" : "ended",
    start: Math.round(store.startedAt[row] ?? 0),
    end: Math.round(store.changedAt[row] ?? 0),
    sent: { packets: store.counts[row * 4] ?? 0, bytes: store.counts[row * 4 + 1] ?? 0 },
    received: { packets: store.counts[row * 4 + 2] ?? 0, bytes: store.counts[row * 4 + 3] ?? 0 },
    ...(relatedTo === undefined ? {} : { relatedTo }),
  };
}

function directionOf(store: ConnectionStore, row: number, { isIngress, isEgress }: LabelMeaning) {
  const egress = isEgress || store.sources[row]?.isLocal === true;
  const ingress = isIngress || answering(store, row)?.isLocal === true;
  return egress && ingress ? "both" : egress ? "egress" : "ingress";
}

function decisionsOf(
  { store, row }: Row,
  { decisions }: LabelMeaning,
  former: readonly FlowDecision[] | undefined,
): FlowDecision[] {
  if (decisions.length > 0) return [...decisions];
  return former === undefined ? unknownDecisions(store, row) : [...former];
}

/** No rule has written into the label, or that was not heard. */
function unknownDecisions(store: ConnectionStore, row: number): FlowDecision[] {
  const marks = store.marks[row] ?? 0;
  const unknown: UnknownRule =
    (marks & MARK.older) !== 0 ? "older than the switch" : (marks & MARK.eventLost) !== 0 ? "event lost" : "not judged";
  const points: Point[] = [];
  const [source, destination] = [store.sources[row], answering(store, row)];
  if (source?.isLocal) points.push(isWorkload(source) ? "workload egress" : "host out");
  if (destination?.isLocal) points.push(isWorkload(destination) ? "workload ingress" : "host in");
  const inOrder = points[0] === "host out" ? points.reverse() : points;
  return inOrder.map((point) => ({ point, verdict: "unknown", unknown }));
}

/** Who answers: the backend of a Service, the container of a host port. */
export function answering(store: ConnectionStore, row: number): NamedEnd | undefined {
  return isForwarded({ store, row }) ? store.backends[row] : store.destinations[row];
}

function isWorkload({ shown: { kind } }: NamedEnd): boolean {
  return kind === "pod" || kind === "container";
}

function sourcePort(store: ConnectionStore, row: number): number {
  return (store.ports[row * 2] ?? 0) >>> 16;
}

function destinationPort(store: ConnectionStore, row: number): number {
  return (store.ports[row * 2] ?? 0) & 0xffff;
}

function replySourcePort(store: ConnectionStore, row: number): number {
  return (store.ports[row * 2 + 1] ?? 0) >>> 16;
}

function replyDestinationPort(store: ConnectionStore, row: number): number {
  return (store.ports[row * 2 + 1] ?? 0) & 0xffff;
}
