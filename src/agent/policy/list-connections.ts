/**
 * The open connections of a host that policy may have judged, from the kernel's table: read in parts, between which the agent does
 * its other work. One that begins meanwhile may be missing.
 */
import type { EndedSender } from "../../firewall/reset-table.ts";
import { type Address, addressFromBytes, type Family, formatAddress } from "../../ip/address.ts";
import { type ListedEntry, listRequest, readReply } from "../../linux/conntrack-entries.ts";
import { TrackedMessage, type TrackedTuple } from "../../linux/conntrack-message.ts";
import type { MessageCursor } from "../../linux/netlink/message-reader.ts";
import { dumpInSteps, type NetlinkSocket } from "../../linux/netlink-socket.ts";
import { ICMP_PROTOCOLS, PROTOCOLS_WITH_PORTS, TCP } from "../../model/protocols.ts";
import type { OpenConnection } from "../../policy/judge/open-connections.ts";

export interface ListedConnection extends ListedEntry {
  readonly connection: OpenConnection;
  /** As text: of its source, of who answers, and whom the source asked. */
  readonly addresses: readonly [source: string, answering: string, destination: string];
  /** Of its first packet. */
  readonly tuple: string;
  /** The tuple of the connection because of which this one exists, such as the data of FTP. Policy has judged that one. */
  readonly parent?: string;
  /** How its source and who answers see it. Of TCP only. */
  readonly senders?: readonly [EndedSender, EndedSender];
}

export interface ListMeans {
  /** By the texts of the addresses of source and of who answers. */
  readonly isWanted: (source: string, answering: string) => boolean;
  readonly pause: () => Promise<void>;
}

const FAMILIES: readonly Family[] = [4, 6];

export async function listConnections(
  socket: NetlinkSocket,
  { isWanted, pause }: ListMeans,
): Promise<readonly ListedConnection[]> {
  const all: (readonly ListedConnection[])[] = [];
  const message = new TrackedMessage();
  const addresses = new KnownAddresses();
  for (const family of FAMILIES) {
    const read = (cursor: MessageCursor): ListedConnection | undefined => {
      message.read(cursor.view, cursor.start, cursor.end);
      // Of a network whose addresses may be the same as ours.
      if (message.hasZone) return undefined;
      const [source, answering] = [message.original.source, message.reply.source].map((words) =>
        addresses.at(family, words),
      );
      if (source === undefined || answering === undefined || !isWanted(source.text, answering.text)) return undefined;
      return listed(message, readReply(cursor), addresses);
    };
    all.push(await dumpInSteps(socket, listRequest(family), { read, pause }));
  }
  return all.flat();
}

function listed(message: TrackedMessage, reply: Uint8Array, addresses: KnownAddresses): ListedConnection | undefined {
  const { family, id, original: first, reply: answer } = message;
  const [source, destination, answering, answered] = [
    ...[first.source, first.destination],
    ...[answer.source, answer.destination],
  ].map((words) => addresses.at(family, words));
  if (source === undefined || destination === undefined || answering === undefined || answered === undefined)
    return undefined;
  const { protocol, sourcePort, destinationPort } = first;
  const hasPorts = PROTOCOLS_WITH_PORTS.has(protocol);
  const icmp = { type: destinationPort >> 8, code: destinationPort & 255 };
  const connection: OpenConnection = {
    ...{ protocol, source: source.address, destination: destination.address, answering: answering.address },
    ...(hasPorts ? { ports: { source: sourcePort, destination: destinationPort, answering: answer.sourcePort } } : {}),
    ...(ICMP_PROTOCOLS.has(protocol) ? { icmp } : {}),
  };
  const senders: readonly [EndedSender, EndedSender] = [
    {
      from: { address: source.address, port: sourcePort },
      to: { address: destination.address, port: destinationPort },
    },
    {
      from: { address: answering.address, port: answer.sourcePort },
      to: { address: answered.address, port: answer.destinationPort },
    },
  ];
  return {
    ...{ family, id, reply, connection, tuple: tupleOf(first) },
    addresses: [source.text, answering.text, destination.text],
    ...(message.hasMaster ? { parent: tupleOf(message.master) } : {}),
    ...(protocol === TCP ? { senders } : {}),
  };
}

function tupleOf({ protocol, source, destination, sourcePort, destinationPort }: TrackedTuple): string {
  return [protocol, source.join(":"), sourcePort, destination.join(":"), destinationPort].join();
}

interface KnownAddress {
  readonly address: Address;
  readonly text: string;
}

/** A host with 100,000 connections has far fewer addresses at their ends. */
class KnownAddresses {
  private readonly known: Readonly<Record<Family, Map<number | string, KnownAddress>>> = { 4: new Map(), 6: new Map() };

  at(family: Family, words: Uint32Array): KnownAddress | undefined {
    const known = this.known[family];
    const key = family === 4 ? (words[0] ?? 0) : words.join();
    const found = known.get(key) ?? addressOf(words.subarray(0, family === 4 ? 1 : words.length));
    if (found !== undefined) known.set(key, found);
    return found;
  }
}

function addressOf(words: Uint32Array): KnownAddress | undefined {
  const bytes = new Uint8Array(words.byteLength);
  const view = new DataView(bytes.buffer);
  for (const [index, word] of words.entries()) view.setUint32(index * 4, word);
  const address = addressFromBytes(bytes);
  return address && { address, text: formatAddress(address) };
}
