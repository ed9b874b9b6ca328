/** The packet that the options of `policy explain` describe. Pure. */

import { normalPath } from "../../../http/normal-path.ts";
import type { Address, Family } from "../../../ip/address.ts";
import { PROTOCOL_NAMES, protocolNumber, TCP } from "../../../model/protocols.ts";
import type { Packet, PacketRequest } from "../../../policy/judge/packet.ts";
import { protocolWords } from "../../../policy/judge/rule-words.ts";
import { quoted } from "../../../quote.ts";
import { type Given, UsageError } from "../../main/command.ts";

export const WITH_PORTS: ReadonlySet<number> = new Set([6, 17, 132]);
export const ICMP = { 4: 1, 6: 58 } as const;
const ECHO_REQUEST = { 4: 8, 6: 128 } as const;

export type PacketShape = (source: Address, destination: Address) => Packet;

/** Checks the options once; the packet itself depends on the addresses. */
export function packetShape({ values }: Given): PacketShape {
  const protocol = readProtocol(values.get("protocol") ?? "tcp");
  const numbers = {
    port: readNumber("port", values.get("port"), 65_535),
    sourcePort: readNumber("source-port", values.get("source-port"), 65_535),
    type: readNumber("icmp-type", values.get("icmp-type"), 255),
    code: readNumber("icmp-code", values.get("icmp-code"), 255),
  };
  const { port, sourcePort, type, code } = numbers;
  const isIcmp = protocol === "icmp" || protocol === ICMP[4] || protocol === ICMP[6];
  const hasPorts = typeof protocol === "number" && WITH_PORTS.has(protocol);
  if (hasPorts && port === undefined) {
    throw new UsageError(
      `"--port" is missing: ${protocolWords(protocol)} needs a destination port, for example --port 80`,
    );
  }
  if (!hasPorts && (port ?? sourcePort) !== undefined) {
    throw new UsageError(`"--${port === undefined ? "source-port" : "port"}" needs --protocol tcp, udp or sctp`);
  }
  if (!isIcmp && (type ?? code) !== undefined) {
    throw new UsageError(`"--${type === undefined ? "icmp-code" : "icmp-type"}" needs --protocol icmp`);
  }
  return (source, destination) => ({
    source,
    destination,
    protocol: protocol === "icmp" ? ICMP[destination.family] : protocol,
    ...(sourcePort === undefined ? {} : { sourcePort }),
    ...(port === undefined ? {} : { destinationPort: port }),
    ...(isIcmp ? { icmp: { type: type ?? ECHO_REQUEST[destination.family], code: code ?? 0 } } : {}),
  });
}

/** The request over the connection; `undefined` if no option describes one. */
export function requestOf({ values }: Given): PacketRequest | undefined {
  const [method, path, principal] = [values.get("method"), values.get("path"), values.get("principal")];
  const trustDomain = values.get("trust-domain");
  const given = REQUEST_OPTIONS.find((name) => values.get(name) !== undefined);
  if (given === undefined) return undefined;
  if (readProtocol(values.get("protocol") ?? "tcp") !== TCP) throw new UsageError(`"--${given}" needs --protocol tcp`);
  if (trustDomain !== undefined && principal === undefined) throw new UsageError('"--trust-domain" needs --principal');
  return {
    http: { method: method ?? "GET", path: path ?? "/" },
    ...(principal === undefined ? {} : { principal }),
    ...(trustDomain === undefined ? {} : { trustDomain }),
  };
}

const REQUEST_OPTIONS = ["method", "path", "principal", "trust-domain"] as const;

/** `GET /a//b (compared as /a/b) of spiffe://…`. */
export function requestWords({ http, principal }: PacketRequest): string {
  const normal = normalPath(http?.path ?? "");
  const compared = !normal.ok ? ["(ambiguous)"] : normal.path === http?.path ? [] : [`(compared as ${normal.path})`];
  const client = principal === undefined ? [] : [`of ${principal}`];
  return [...(http === undefined ? [] : [http.method, http.path, ...compared]), ...client].join(" ");
}

export function wantedFamily({ values }: Given): Family | undefined {
  const text = values.get("ip-version");
  return text === undefined ? undefined : text === "4" ? 4 : 6;
}

export function packetWords({ protocol, destinationPort, sourcePort, icmp, destination }: Packet): string {
  return [
    `IPv${destination.family}`,
    protocolWords(protocol),
    ...(icmp === undefined ? [] : [`type ${icmp.type} code ${icmp.code}`]),
    ...(sourcePort === undefined ? [] : [`from port ${sourcePort}`]),
    ...(destinationPort === undefined ? [] : [`to port ${destinationPort}`]),
  ].join(" ");
}

export function readProtocol(text: string): number | "icmp" {
  if (text.toLowerCase() === "icmp") return "icmp";
  const number = protocolNumber(text);
  if (number !== undefined && number >= 0 && number <= 255 && text.trim() !== "") return number;
  const names = PROTOCOL_NAMES.join(", ");
  throw new UsageError(`"--protocol" is ${quoted(text)}: must be ${names} or a number from 0 to 255`);
}

export function readNumber(option: string, text: string | undefined, most: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= most) return number;
  throw new UsageError(`"--${option}" is ${quoted(text)}: must be a number from 0 to ${most}`);
}
