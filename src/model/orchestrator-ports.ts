/** Ports of the orchestrator's policies, grouped by protocol. Pure. */
import { quoted } from "../quote.ts";
import { Unconvertible } from "./orchestrator-selector.ts";
import { isObject } from "./shape.ts";

/** One protocol with its ports; no ports means all of them, no protocol means all protocols. */
export interface ProtocolPorts {
  readonly protocol?: string;
  readonly ports: readonly (number | string)[];
}

interface Range {
  readonly first: number;
  readonly last: number;
}

const PROTOCOLS = ["TCP", "UDP", "SCTP"];
const LAST_PORT = 65_535;
/** Not digits alone: those are a number for our rules. */
const PORT_NAME = /^(?=.*[^0-9:])[a-zA-Z0-9_.-]{1,128}$/;

export function convertPorts(given: readonly unknown[]): readonly ProtocolPorts[] {
  if (given.length === 0) return [{ ports: [] }];
  const byProtocol = Map.groupBy(given.map(convertPort), ({ protocol }) => protocol);
  return Array.from(byProtocol, ([protocol, entries]) => {
    if (entries.some(({ port }) => port === undefined)) return { protocol, ports: [] };
    const ranges = entries.flatMap(({ port }) => (typeof port === "object" ? [port] : []));
    const names = entries.flatMap(({ port }) => (typeof port === "string" ? [port] : []));
    return { protocol, ports: [...mergedRanges(ranges).map(rangeText), ...new Set(names)] };
  });
}

/** `port`: absent for all ports of the protocol. */
function convertPort(given: unknown): { readonly protocol: string; readonly port?: Range | string } {
  if (!isObject(given)) throw new Unconvertible("a port is not an object");
  const { protocol, port, endPort, ...others } = given;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new Unconvertible(`a port has the unknown field ${quoted(unknown)}`);
  const name = protocol ?? "TCP";
  if (typeof name !== "string" || !PROTOCOLS.includes(name)) {
    throw new Unconvertible(`${quoted(name)} is not a protocol with ports`);
  }
  const hasEnd = endPort !== undefined && endPort !== null;
  if (port === undefined || port === null) {
    if (hasEnd) throw new Unconvertible("an endPort has no port");
    return { protocol: name };
  }
  if (typeof port === "string" && PORT_NAME.test(port) && !hasEnd) return { protocol: name, port };
  const range = { first: port, last: hasEnd ? endPort : port };
  if (!isRange(range)) throw new Unconvertible(`${quoted(hasEnd ? `${port}:${endPort}` : port)} is not a port`);
  return { protocol: name, port: range };
}

function isRange(range: { readonly first: unknown; readonly last: unknown }): range is Range {
  const { first, last } = range;
  return isPort(first) && isPort(last) && first <= last;
}

function isPort(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= LAST_PORT;
}

function mergedRanges(ranges: readonly Range[]): readonly Range[] {
  const merged: Range[] = [];
  for (const range of ranges.toSorted((left, right) => left.first - right.first)) {
    const last = merged.at(-1);
    if (last === undefined || range.first > last.last + 1) merged.push(range);
    else merged[merged.length - 1] = { first: last.first, last: Math.max(last.last, range.last) };
  }
  return merged;
}

function rangeText({ first, last }: Range): number | string {
  return first === last ? first : `${first}:${last}`;
}
