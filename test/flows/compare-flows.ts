/**
 * What is different between the records of a node and what captures on the links of its ends saw: each connection has its records,
 * each record its connection, with the same counters, the rules of the judge, and names. Pure.
 */
import type { FlowEnd, FlowRecord } from "../../src/flows/flow-record.ts";
import type { CapturedConnection, Count } from "./captured-connections.ts";
import { type ExpectedDecision, expectedDecisions, type JudgedWorld, judgedPacket } from "./expected-decisions.ts";

export interface Seen {
  /** By the end on whose link they were captured. */
  readonly connections: ReadonlyMap<string, readonly CapturedConnection[]>;
  readonly records: readonly FlowRecord[];
  /** Of the captures. Pings that the same rule denied shortly before are in the same record. */
  readonly since: number;
  /** `x/a`, `host`, `outside`, `side`; undefined for another address. */
  readonly endAt: (address: string) => string | undefined;
}

export function differences(seen: Seen, world: JudgedWorld): readonly string[] {
  const asked = connectionsBy(seen, ({ source }, name) => seen.endAt(source) === name);
  const arrived = connectionsBy(
    seen,
    (connection, name) => seen.endAt(connection.destination) === name && !isUnjudgedPing(connection, seen, world),
  );
  const found: string[] = [];
  const asAsked = Map.groupBy(seen.records, (record) => askedBy(record, asked));
  const asArrived = Map.groupBy(
    seen.records.filter(({ verdict }) => verdict !== "denied"),
    (record) => arrivedKey(record),
  );
  for (const [key, connections] of asked)
    found.push(...recordDifferences(key, { connections, records: asAsked.get(key) ?? [] }, seen, world));
  for (const [key, connections] of arrived) {
    const records = asArrived.get(key) ?? [];
    const isExpected = connections.some((connection) => isRecorded(connection, seen, world));
    if (records.length !== connections.length && (isExpected || records.length > 0))
      found.push(`${key} arrived: ${connections.length} connections, ${records.length} records`);
    if (records.length > 0) found.push(...countDifferences(`${key} arrived`, connections, records));
  }
  // What the host itself sends and may not send comes to no link.
  const captured = seen.records.filter(
    ({ source, verdict }) => verdict !== "denied" || seen.endAt(source.address) !== "host",
  );
  for (const record of captured)
    if (!asked.has(askedBy(record, asked)) && !arrived.has(arrivedKey(record)))
      found.push(`no packet of ${textOf(record)}`);
  return found;
}

function connectionsBy(
  { connections }: Seen,
  isWanted: (connection: CapturedConnection, name: string) => boolean,
): ReadonlyMap<string, readonly CapturedConnection[]> {
  const all = Array.from(connections).flatMap(([name, list]) => list.filter((each) => isWanted(each, name)));
  return Map.groupBy(all, (each) => keyOf(each));
}

/**
 * Of the host itself, which no rule judges, so it is not recorded. Those of pods behind the masquerade have the same ends there, and
 * their identifier on both links.
 */
function isUnjudgedPing(connection: CapturedConnection, seen: Seen, world: JudgedWorld): boolean {
  const { protocol, source, sourcePort, destination } = connection;
  if (!isIcmp(protocol) || seen.endAt(source) !== "host" || isRecorded(connection, seen, world)) return false;
  return !Array.from(seen.connections).some(([name, list]) =>
    list.some((each) => {
      const isSame = each.destination === destination && each.sourcePort === sourcePort && each.protocol === protocol;
      return isSame && seen.endAt(each.source) === name;
    }),
  );
}

function isIcmp(protocol: number): boolean {
  return protocol === 1 || protocol === 58;
}

function keyOf({ protocol, source, sourcePort, destination, destinationPort }: CapturedConnection): string {
  return pairKey(protocol, { address: source, port: sourcePort }, { address: destination, port: destinationPort });
}

type Place = Pick<FlowEnd, "address" | "port">;

/** Records of pings have no identifier: those between the same ends are compared together. */
function pairKey(protocol: number, source: Place, destination: Place): string {
  const text = ({ address, port }: Place) => (isIcmp(protocol) ? address : `${address} ${port}`);
  return `${protocol} ${text(source)} -> ${text(destination)}`;
}

function askedKey({ protocol, source, destination }: FlowRecord): string {
  return pairKey(protocol, source, destination);
}

/** Without the connection, which not every kernel tells, a denied packet is recorded as it was then: its destination may be translated already. */
function askedBy(record: FlowRecord, asked: ReadonlyMap<string, unknown>): string {
  const key = askedKey(record);
  if (record.verdict !== "denied" || asked.has(key)) return key;
  const [source = ""] = key.split("-> ");
  return [...asked.keys()].find((each) => each.startsWith(`${source}-> `)) ?? key;
}

function arrivedKey({ protocol, source, destination, backend, seenAs }: FlowRecord): string {
  return pairKey(protocol, seenAs ?? source, backend ?? destination);
}

function textOf(record: FlowRecord): string {
  return `${askedKey(record)} (${record.verdict}, ${record.state}, sent ${record.sent.packets}, ${JSON.stringify(record.decisions)})`;
}

interface Matched {
  readonly connections: readonly CapturedConnection[];
  readonly records: readonly FlowRecord[];
}

function recordDifferences(
  key: string,
  { connections, records }: Matched,
  seen: Seen,
  world: JudgedWorld,
): readonly string[] {
  const [connection] = connections;
  const [record] = records;
  if (connection === undefined) return [];
  if (record === undefined) return isRecorded(connection, seen, world) ? [`no record of ${key}`] : [];
  const found: string[] = [];
  // Packets that are denied begin nothing: one record may stand for several. The next one may get another backend, which allows it.
  const passed = records.filter(({ verdict }) => verdict !== "denied");
  if (passed.length > 0 && passed.length !== connections.length)
    found.push(
      `${key}: ${connections.length} connections, ${records.length} records: ${records.map(textOf).join("; ")}`,
    );
  if (records.every(({ start }) => start >= seen.since)) found.push(...countDifferences(key, connections, records));
  for (const each of records) {
    found.push(...decisionDifferences({ key, record: each, asked: connection }, seen, world));
    found.push(...nameDifferences(key, each, seen));
  }
  return found;
}

/** A connection that reaches an answering end has as many packets there as at its source. */
function countDifferences(
  key: string,
  connections: readonly CapturedConnection[],
  records: readonly FlowRecord[],
): readonly string[] {
  return (["sent", "received"] as const).flatMap((way) => {
    const captured = sumOf(connections.map((each) => each[way]));
    const recorded = sumOf(records.map((each) => ({ ...each[way], payload: 0 })));
    const isSame = recorded.packets === captured.packets && recorded.bytes === captured.bytes;
    if (isSame || isWithinSegmentation(captured, recorded) || isUnanswered(connections, recorded)) return [];
    const text = ({ packets, bytes }: Count) => `${packets} packets, ${bytes} bytes`;
    return [
      `${key} ${way} (${records.map(({ state }) => state).join(", ")}): captured ${text(captured)}; recorded ${text(recorded)}`,
    ];
  });
}

/** Packets that are cut into segments later, or joined: the payload is the same, the headers are not. */
function isWithinSegmentation(captured: Count, recorded: Count): boolean {
  const SMALLEST_SEGMENT = 500;
  const LARGEST_HEADER = 120;
  const most = Math.max(captured.packets, Math.ceil(captured.payload / SMALLEST_SEGMENT));
  const isSegmented = captured.payload > captured.packets * SMALLEST_SEGMENT;
  return (
    isSegmented &&
    recorded.bytes >= captured.payload &&
    recorded.bytes <= captured.payload + most * LARGEST_HEADER &&
    recorded.packets > 0
  );
}

/** The kernel counts the first packet of TCP once, however often it is sent again, as long as nobody answers. */
function isUnanswered(connections: readonly CapturedConnection[], recorded: Count): boolean {
  const [connection] = connections;
  return connection?.protocol === 6 && connection.received.packets === 0 && recorded.packets === connections.length;
}

function sumOf(counts: readonly Count[]): Count {
  const sum = (field: keyof Count) => counts.reduce((total, count) => total + count[field], 0);
  return { packets: sum("packets"), bytes: sum("bytes"), payload: sum("payload") };
}

/** Without a record nobody knows the backend of a Service: only what goes to an end is asked. */
function isRecorded(connection: CapturedConnection, { endAt }: Seen, world: JudgedWorld): boolean {
  const [from, to] = [endAt(connection.source) ?? "", endAt(connection.destination) ?? ""];
  if (from.includes("/") || to.includes("/") || to === "") return true;
  const decisions = expectedDecisions({ packet: judgedPacket(connection), from, to }, world);
  return decisions.some(({ comment }) => comment !== undefined);
}

/** `asked`: to whom the packets went at first, which a record of denied ones may not say. */
function decisionDifferences(
  { key, record, asked }: { readonly key: string; readonly record: FlowRecord; readonly asked: CapturedConnection },
  { endAt }: Seen,
  world: JudgedWorld,
): readonly string[] {
  const { protocol, source, destination, backend = destination } = record;
  const [from, to] = [endAt(source.address) ?? "", endAt(backend.address) ?? ""];
  const isOtherPort = !isIcmp(protocol) && asked.destinationPort !== backend.port;
  const isTranslated = asked.destination !== backend.address || isOtherPort;
  const packet = judgedPacket(
    {
      ...{ protocol, source: source.address, sourcePort: source.port ?? 0 },
      ...{ destination: backend.address, destinationPort: backend.port ?? 0 },
    },
    isTranslated ? { address: asked.destination, port: asked.destinationPort } : undefined,
  );
  const expected = expectedDecisions({ packet, from, to }, world);
  const verdict = expected.at(-1)?.verdict === "deny" ? "denied" : "allowed";
  const found =
    record.verdict === verdict ? [] : [`${key}: ${record.verdict}, and the judge says ${verdict}: ${textOf(record)}`];
  const isHostToWorkload = from === "host" && to.includes("/");
  // Not every kernel tells which rules have accepted a denied packet before.
  for (const want of record.verdict === "denied" ? expected.slice(-1) : expected)
    if (!isAmong(want, record)) found.push(`${key}: not "${want.point}: ${want.comment}" but ${textOf(record)}`);
  for (const { point, rule } of record.decisions)
    if (!isHostToWorkload && !expected.some((want) => want.point === point))
      found.push(`${key}: nobody judges at ${point}: ${rule}`);
  return found;
}

function isAmong({ point, verdict, comment }: ExpectedDecision, { decisions }: FlowRecord): boolean {
  if (comment === undefined) return true;
  return decisions.some((each) => each.point === point && each.verdict === verdict && each.rule === comment);
}

function nameDifferences(
  key: string,
  { source, destination, backend }: FlowRecord,
  { endAt }: Seen,
): readonly string[] {
  return [source, destination, ...(backend === undefined ? [] : [backend])].flatMap((end) => {
    const name = endAt(end.address) ?? "outside";
    const kind = name.includes("/") ? "pod" : name === "host" ? "host" : "outside";
    const expected = kind === "pod" ? `pod ${name}` : kind;
    const found = kind === "pod" ? `${end.kind} ${end.namespace}/${end.name}` : end.kind;
    return found === expected ? [] : [`${key}: ${end.address} is ${expected}, not ${found}`];
  });
}
