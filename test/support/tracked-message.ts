/** Messages of the kernel about tracked connections, as tests write them. */
import { labelOf } from "../../src/flows/rule-label.ts";
import { addressBytes, parseAddress } from "../../src/ip/address.ts";
import { STATUS, TrackedMessage, type TrackedTuple } from "../../src/linux/conntrack-message.ts";
import type { Point } from "../../src/policy/point.ts";

const TCP = 6;

export interface Ends {
  readonly from: string;
  readonly to: string;
  readonly protocol?: number;
  /** Who answers, and whom the answers go to. */
  readonly answers?: string;
  readonly seenAs?: string;
}

export interface Told extends Ends {
  readonly id?: number;
  readonly rules?: readonly (readonly [Point, number])[];
  /** Packets and bytes, there and back. */
  readonly counts?: readonly [number, number, number, number];
  readonly start?: number;
  readonly stop?: number;
  readonly icmp?: readonly [type: number, code: number];
  readonly parent?: Ends;
}

/** `10.0.0.1:80`, `[fd00::1]:80`. */
function putEnd(words: Uint32Array, text: string): number {
  const [, bracketed, plain, port] = /^(?:\[(.*)\]|([^:]*)):(\d+)$/.exec(text) ?? [];
  const bytes = addressBytes(parseAddress(bracketed ?? plain ?? "") ?? { family: 4, value: 0n });
  const view = new DataView(bytes.buffer);
  for (let index = 0; index < bytes.length / 4; index++) words[index] = view.getUint32(index * 4);
  return Number(port);
}

function putTuple(tuple: TrackedTuple, { from, to, protocol = TCP }: Ends): void {
  tuple.protocol = protocol;
  tuple.sourcePort = putEnd(tuple.source, from);
  tuple.destinationPort = putEnd(tuple.destination, to);
}

/** A connection as the kernel tells of it. */
export function told({ id = 1, rules = [], counts = [0, 0, 0, 0], start = 0, stop = 0, icmp, parent, ...ends }: Told) {
  const message = new TrackedMessage();
  message.family = ends.from.startsWith("[") ? 6 : 4;
  message.id = id;
  putTuple(message.original, ends);
  putTuple(message.reply, {
    from: ends.answers ?? ends.to,
    to: ends.seenAs ?? ends.from,
    protocol: ends.protocol ?? TCP,
  });
  if (icmp !== undefined) message.original.destinationPort = icmp[0] * 256 + icmp[1];
  const bytes = new Uint8Array(message.label.buffer);
  for (const [point, number] of rules)
    for (const [at, byte] of labelOf(point, number).entries()) bytes[at] = (bytes[at] ?? 0) | byte;
  [message.sentPackets, message.sentBytes, message.receivedPackets, message.receivedBytes] = counts;
  message.start = start;
  message.stop = stop;
  if (parent === undefined) return message;
  message.hasMaster = true;
  message.status = STATUS.expected;
  putTuple(message.master, parent);
  return message;
}
