/** Packets in the kernel's log: what `Log` rules write, of this release and of earlier ones. Pure. */

import { identity } from "../../identity.ts";
import { type Address, parseAddress } from "../../ip/address.ts";
import { protocolNumber } from "../../model/protocols.ts";
import { UPGRADE_POLICY } from "../../model/upgrade-policy.ts";
import type { Direction } from "../../policy/effective-rule.ts";

export interface LoggedPacket {
  readonly direction: Direction;
  /** The end that is not the host. */
  readonly peer: Address;
  /** Its number. */
  readonly protocol: number;
  readonly destinationPort?: number;
  readonly icmpType?: number;
  readonly icmpCode?: number;
}

/** Earlier releases wrote the same prefix for all policies, this one the policy, the direction and the rule (first builds: no rule). */
const OWN_LINE = new RegExp(`(?:default\\.)?${UPGRADE_POLICY} (?:ingress|egress) (?:rule \\d+: )?(IN=.*)`);
const FORMER_LINE = new RegExp(`${identity.product}-packet:? *(IN=.*)`);

/** `undefined`: not a line about a packet of the host itself. */
export function parseLogLine(line: string): LoggedPacket | undefined {
  const text = (OWN_LINE.exec(line) ?? FORMER_LINE.exec(line))?.[1];
  const fields = text === undefined ? undefined : fieldsIn(text);
  if (fields === undefined) return undefined;
  const direction = directionOf(fields);
  const peer =
    direction === undefined ? undefined : parseAddress(fields[direction === "ingress" ? "SRC" : "DST"] ?? "");
  const protocol = protocolOf(fields["PROTO"] ?? "");
  if (direction === undefined || peer === undefined || protocol === undefined) return undefined;
  const port = numberIn(fields["DPT"]);
  const [type, code] = [numberIn(fields["TYPE"]), numberIn(fields["CODE"])];
  return {
    ...{ direction, peer, protocol },
    ...(port === undefined ? {} : { destinationPort: port }),
    ...(type === undefined ? {} : { icmpType: type }),
    ...(code === undefined ? {} : { icmpCode: code }),
  };
}

/** A message of ICMP quotes the packet that it is about in brackets. */
function fieldsIn(text: string): Readonly<Record<string, string>> {
  const own = text.replace(/\[.*$/, "");
  return Object.fromEntries(Array.from(own.matchAll(/(\w+)=(\S*)/g), ([, name = "", value = ""]) => [name, value]));
}

/** Forwarded packets have both interfaces: policies of hosts apply to them only with `applyOnForward`. */
function directionOf({ IN, OUT }: Readonly<Record<string, string>>): Direction | undefined {
  if (IN && !OUT) return "ingress";
  return OUT && !IN ? "egress" : undefined;
}

function protocolOf(text: string): number | undefined {
  const number = protocolNumber(text);
  return number !== undefined && number >= 1 && number <= 255 ? number : undefined;
}

function numberIn(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
