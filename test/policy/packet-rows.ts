/**
 * Packets as a person writes them, one row each:
 *
 *   FROM -> TO PROTOCOL [PORT,PORT…] [v4|v6]  allow|deny
 *
 * Several ports are several rows, and without an IP version it is a row for both.
 */
import { parseAddress } from "../../src/ip/address.ts";
import { protocolNumber } from "../../src/model/protocols.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { End } from "./policy-site.ts";
import type { Outcome, Probe } from "./probes.ts";

export interface Row {
  readonly text: string;
  readonly probe: Probe;
  readonly expected: Outcome;
}

export function readRows(text: string, endOf: (name: string) => End): readonly Row[] {
  const lines = text.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "").flatMap((line) => readRow(line, endOf));
}

function readRow(line: string, endOf: (name: string) => End): readonly Row[] {
  const [, from = "", to = "", protocol = "", ports = "0", version, expected = ""] =
    /^(\S+) -> (\S+) (tcp|udp|sctp|icmp)(?: ([\d,]+))?(?: v([46]))? (allow|deny)$/.exec(line) ?? unreadable(line);
  const families = version === undefined ? ([4, 6] as const) : [version === "4" ? (4 as const) : (6 as const)];
  return ports.split(",").flatMap((port) =>
    families.map((family) => ({
      text: `${from} -> ${to} ${protocol} ${port} v${family}`,
      probe: { from: endOf(from), to: endOf(to), protocol: protocol as Probe["protocol"], port: Number(port), family },
      expected: expected as Outcome,
    })),
  );
}

/** The first packet of the probe's connection, as the judge sees it. */
export function firstPacket({ from, to, protocol, port, family }: Probe): Packet {
  const address = (end: End) => parseAddress(end.addresses[family === 4 ? 0 : 1]) ?? unreadable(end.name);
  const isIcmp = protocol === "icmp";
  return {
    source: address(from),
    destination: address(to),
    protocol: isIcmp ? (family === 4 ? 1 : 58) : (protocolNumber(protocol) ?? 0),
    ...(isIcmp ? { icmp: { type: family === 4 ? 8 : 128, code: 0 } } : { destinationPort: port }),
  };
}

export function unreadable(text: string): never {
  throw new Error(`Not in the table's notation: ${text}`);
}
