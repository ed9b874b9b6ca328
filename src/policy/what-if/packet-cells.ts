/**
 * Packets that no rule of some programs can tell apart, as one cell: a protocol with a range of ports, or a type of ICMP. A cell
 * has one packet that stands for all of them. Pure.
 */
import type { Packet } from "../judge/packet.ts";

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

export interface PacketCell {
  /** Absent: every protocol that no cell names. */
  readonly protocol?: number;
  /** Of TCP, UDP and SCTP. */
  readonly destination?: PortRange;
  readonly source?: PortRange;
  /** Of ICMP and ICMPv6; a part is absent: all that no cell names. */
  readonly icmp?: { readonly type?: number; readonly code?: number };
}

/** What rules tell apart of one protocol. */
export interface Breaks {
  /** The first port of each range, without 0. */
  readonly destination: ReadonlySet<number>;
  readonly source: ReadonlySet<number>;
  /** The codes that are named of each type. */
  readonly icmp: ReadonlyMap<number, ReadonlySet<number>>;
}

/** By protocol; only those that rules name. */
export type PacketBreaks = ReadonlyMap<number, Breaks>;

const PORT_PROTOCOLS: ReadonlySet<number> = new Set([6, 17, 132]);
const ICMP_PROTOCOLS: ReadonlySet<number> = new Set([1, 58]);
const LAST_PORT = 65_535;
const LAST_TYPE = 255;

export class BreaksBuilder {
  private readonly protocols = new Map<
    number,
    { destination: Set<number>; source: Set<number>; icmp: Map<number, Set<number>> }
  >();

  protocol(number: number) {
    const breaks = this.protocols.get(number) ?? { destination: new Set(), source: new Set(), icmp: new Map() };
    this.protocols.set(number, breaks);
    return breaks;
  }

  ports(protocol: number, side: "source" | "destination", { first, last }: PortRange): void {
    const starts = this.protocol(protocol)[side];
    if (first > 0) starts.add(first);
    if (last < LAST_PORT) starts.add(last + 1);
  }

  icmp(protocol: number, type: number | undefined, code: number | undefined): void {
    const { icmp } = this.protocol(protocol);
    if (type === undefined) return;
    const codes = icmp.get(type) ?? new Set();
    icmp.set(type, codes);
    if (code !== undefined) codes.add(code);
  }

  add(breaks: PacketBreaks): void {
    for (const [number, { destination, source, icmp }] of breaks) {
      const own = this.protocol(number);
      for (const start of destination) own.destination.add(start);
      for (const start of source) own.source.add(start);
      for (const [type, codes] of icmp) {
        this.icmp(number, type, undefined);
        for (const code of codes) this.icmp(number, type, code);
      }
    }
  }

  get breaks(): PacketBreaks {
    return this.protocols;
  }
}

/** Every packet is in exactly one of them. */
export function cellsOf(breaks: PacketBreaks): readonly PacketCell[] {
  const named = Array.from(breaks)
    .sort(([left], [right]) => left - right)
    .flatMap(([protocol, { destination, source, icmp }]): readonly PacketCell[] => {
      if (PORT_PROTOCOLS.has(protocol)) {
        const sources = source.size === 0 ? [undefined] : rangesFrom(source);
        return sources.flatMap((from) =>
          rangesFrom(destination).map((to) => ({
            ...{ protocol, destination: to },
            ...(from === undefined ? {} : { source: from }),
          })),
        );
      }
      if (!ICMP_PROTOCOLS.has(protocol)) return [{ protocol }];
      const types = Array.from(icmp).sort(([left], [right]) => left - right);
      return [
        ...types.flatMap(([type, codes]) => [
          ...[...codes].sort((left, right) => left - right).map((code) => ({ protocol, icmp: { type, code } })),
          { protocol, icmp: { type } },
        ]),
        { protocol, icmp: {} },
      ];
    });
  return [...named, {}];
}

function rangesFrom(starts: ReadonlySet<number>): readonly PortRange[] {
  const sorted = [0, ...starts].sort((left, right) => left - right);
  return sorted.map((first, index) => ({ first, last: (sorted[index + 1] ?? LAST_PORT + 1) - 1 }));
}

export type PacketShape = Pick<Packet, "protocol" | "sourcePort" | "destinationPort" | "icmp">;

/** The packet that stands for the cell. */
export function shapeOf({ protocol, destination, source, icmp }: PacketCell, breaks: PacketBreaks): PacketShape {
  if (protocol === undefined)
    return { protocol: unnamed(new Set([...PORT_PROTOCOLS, ...ICMP_PROTOCOLS, ...breaks.keys()]), 253) };
  if (destination !== undefined)
    return { protocol, sourcePort: source?.first ?? 0, destinationPort: destination.first };
  if (icmp === undefined) return { protocol };
  const types = breaks.get(protocol)?.icmp ?? new Map<number, ReadonlySet<number>>();
  const type = icmp.type ?? unnamed(types, 0);
  return { protocol, icmp: { type, code: icmp.code ?? unnamed(types.get(type) ?? new Set(), 0) } };
}

function unnamed(named: { has(number: number): boolean }, from: number): number {
  const all = Array.from({ length: LAST_TYPE + 1 }, (_, index) => (from + index) % (LAST_TYPE + 1));
  return all.find((number) => !named.has(number)) ?? from;
}

/** Verdicts about all packets: the same object wherever they are the same, if one `PacketVerdictsIndex` made them. */
export interface PacketVerdicts {
  readonly id: number;
  /** Only those at which the verdict changes. */
  readonly breaks: PacketBreaks;
  allows(shape: PacketShape): boolean;
}

export class PacketVerdictsIndex {
  private readonly byText = new Map<string, PacketVerdicts>();
  readonly everything = this.of(new Map(), () => true);

  /** `allows`: about packets that the breaks tell apart. */
  of(breaks: PacketBreaks, allows: (shape: PacketShape) => boolean): PacketVerdicts {
    const needed = neededBreaks(breaks, (cell) => allows(shapeOf(cell, breaks)));
    const verdicts = new Map(
      cellsOf(needed).map((cell) => {
        const shape = shapeOf(cell, needed);
        return [cellKey(shape, needed), allows(shape)] as const;
      }),
    );
    const text = JSON.stringify([...verdicts]);
    const known = this.byText.get(text);
    if (known !== undefined) return known;
    const isAllowed = (shape: PacketShape) => verdicts.get(cellKey(shape, needed)) === true;
    const made = { id: this.byText.size, breaks: needed, allows: isAllowed };
    this.byText.set(text, made);
    return made;
  }
}

const SIDES = [
  ["source", "destination"],
  ["destination", "source"],
] as const;

function neededBreaks(breaks: PacketBreaks, allows: (cell: PacketCell) => boolean): PacketBreaks {
  const builder = new BreaksBuilder();
  const others = allows({});
  for (const [protocol, own] of breaks) {
    const verdicts = cellsOf(new Map([[protocol, own]]))
      .filter((cell) => cell.protocol !== undefined)
      .map((cell) => ({ cell, isAllowed: allows(cell) }));
    if (verdicts.every(({ isAllowed }) => isAllowed === others)) continue;
    builder.protocol(protocol);
    for (const [side, other] of SIDES) {
      for (const row of Map.groupBy(verdicts, ({ cell }) => cell[other]?.first).values()) {
        for (const [index, { cell, isAllowed }] of row.entries()) {
          const first = cell[side]?.first ?? 0;
          if (index > 0 && isAllowed !== row[index - 1]?.isAllowed)
            builder.ports(protocol, side, { first, last: LAST_PORT });
        }
      }
    }
    const ofType = (type: number | undefined) =>
      verdicts.find(({ cell: { icmp } }) => icmp?.type === type && icmp?.code === undefined)?.isAllowed;
    for (const { cell, isAllowed } of verdicts) {
      if (cell.icmp?.type === undefined) continue;
      const { type, code } = cell.icmp;
      if (isAllowed !== ofType(code === undefined ? undefined : type)) builder.icmp(protocol, type, code);
    }
  }
  return builder.breaks;
}

/** The cell of these breaks that has the packet, as a text. */
function cellKey({ protocol, sourcePort = 0, destinationPort = 0, icmp }: PacketShape, breaks: PacketBreaks): string {
  const own = breaks.get(protocol);
  if (own === undefined) return "other";
  if (icmp !== undefined) {
    const codes = own.icmp.get(icmp.type);
    if (codes === undefined) return `${protocol}`;
    return codes.has(icmp.code) ? `${protocol} ${icmp.type} ${icmp.code}` : `${protocol} ${icmp.type}`;
  }
  return `${protocol} ${startIn(own.source, sourcePort)} ${startIn(own.destination, destinationPort)}`;
}

function startIn(starts: ReadonlySet<number>, port: number): number {
  let found = 0;
  for (const start of starts) if (start <= port && start > found) found = start;
  return found;
}

/** Whether the cell, of those of `cellsOf(breaks)`, has the packet. */
export function hasPacket(
  { protocol, destination, source, icmp }: PacketCell,
  packet: PacketShape,
  breaks: PacketBreaks,
): boolean {
  if (protocol === undefined) return !breaks.has(packet.protocol);
  if (protocol !== packet.protocol) return false;
  if (destination !== undefined && !isWithin(destination, packet.destinationPort)) return false;
  if (source !== undefined && !isWithin(source, packet.sourcePort)) return false;
  if (icmp === undefined || packet.icmp === undefined) return true;
  const named = breaks.get(protocol)?.icmp;
  if (icmp.type === undefined) return named?.has(packet.icmp.type) !== true;
  if (icmp.type !== packet.icmp.type) return false;
  return icmp.code === undefined
    ? named?.get(icmp.type)?.has(packet.icmp.code) !== true
    : icmp.code === packet.icmp.code;
}

function isWithin({ first, last }: PortRange, port: number | undefined): boolean {
  return port !== undefined && first <= port && port <= last;
}
