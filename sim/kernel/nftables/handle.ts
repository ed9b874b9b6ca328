/**
 * Answers the datagrams that programs send to a netfilter socket, as the kernel does: batches of changes, questions about the
 * ruleset, and what the product asks about tracked connections.
 */
import { type ErrnoName, errnoOf } from "../../../src/linux/errno.ts";
import { MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import { FLAG } from "../../../src/linux/netlink/wire.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";
import { Answer } from "./answer.ts";
import { applyBatch } from "./batch.ts";
import { answerConntrack, CONNTRACK } from "./conntrack.ts";
import type { Author } from "./describe.ts";
import { tellListeners } from "./listeners.ts";
import { type MessageHead, Outbox } from "./outbox.ts";
import { Refused } from "./refused.ts";
import { Request } from "./request.ts";
import type { NetfilterState } from "./state.ts";
import { Transaction } from "./transaction.ts";

export interface Sender extends Author {
  /** The address of the socket. */
  readonly port: number;
  /** What goes wrong between it and its kernel, at random. */
  readonly faults?: { refusal(): ErrnoName | undefined; interruptsDump(): boolean };
}

export type Reply = (bytes: Uint8Array) => void;
export type Notify = (group: number, bytes: Uint8Array) => void;

/** `reply` is called once for each datagram to the sender, `notify` for each to the sockets that have joined the group. */
export function handleNetfilter(
  state: NetfilterState,
  datagram: Uint8Array,
  sender: Sender,
  reply: Reply,
  notify: Notify,
): void {
  const outbox = new Outbox(sender.port, reply);
  const first = new MessageCursor(datagram);
  if (first.next() && first.type === wire.BATCH.begin) handleBatch({ state, datagram, sender, outbox, notify });
  else {
    const messages = new MessageCursor(datagram);
    while (messages.next()) handleQuestion(state, messages, sender, outbox);
  }
  outbox.flush();
}

/** A socket is closed: the tables that it owns are deleted. */
export function releaseTables(state: NetfilterState, sender: Sender, notify: Notify): void {
  const owned = [...state.tables.values()].filter(({ owner }) => owner === sender.port);
  if (owned.length === 0) return;
  const transaction = new Transaction(state);
  for (const table of owned) transaction.removeTable(table);
  state.generation++;
  state.changes++;
  state.changedBy = sender.processName;
  tellListeners(state, transaction.events, sender, notify);
}

interface BatchMeans {
  readonly state: NetfilterState;
  readonly datagram: Uint8Array;
  readonly sender: Sender;
  readonly outbox: Outbox;
  readonly notify: Notify;
}

function handleBatch({ state, datagram, sender, outbox, notify }: BatchMeans): void {
  const begin = new MessageCursor(datagram);
  begin.next();
  const reason = sender.faults?.refusal() ?? (isOutdated(state, begin) ? "ERESTART" : undefined);
  const refusal = state.faults.takeRefusal() ?? (reason && errnoOf(reason));
  if (refusal !== undefined) {
    outbox.acknowledge(headOf(begin), refusal);
    return;
  }
  const { replies, events } = applyBatch(state, requestsOf(datagram), sender.port);
  for (const { request, errno } of replies) outbox.acknowledge(headOf(request.message), errno);
  if (events.length === 0) return;
  state.changedBy = sender.processName;
  tellListeners(state, events, sender, notify);
}

/** The batch is for a certain generation, and the ruleset has another. */
function isOutdated(state: NetfilterState, begin: MessageCursor): boolean {
  const attributes = begin.attributes(wire.HEADER_LENGTH);
  while (attributes.next())
    if (attributes.type === wire.BATCH.generation) return attributes.u32Big() !== state.generation;
  return false;
}

/** Those between the begin and the end of the batch. A cursor of its own for each, since a cursor moves on. */
function requestsOf(datagram: Uint8Array): readonly Request[] {
  const requests: Request[] = [];
  const messages = new MessageCursor(datagram);
  while (messages.next() && messages.type !== wire.BATCH.end) {
    if (messages.type === wire.BATCH.begin) continue;
    const alone = new MessageCursor(datagram.subarray(messages.start - 16, messages.end));
    alone.next();
    requests.push(new Request(alone));
  }
  return requests;
}

function handleQuestion(state: NetfilterState, message: MessageCursor, sender: Sender, outbox: Outbox): void {
  const isList = (message.flags & FLAG.dump) === FLAG.dump;
  try {
    if ((message.type & 0xff00) === CONNTRACK) answerConntrack(state.connections, message, outbox);
    else {
      const answer = new Answer(state, new Request(message), outbox, sender);
      if (isList) answer.list();
      else answer.find();
    }
    if (isList) {
      const isInterrupted = state.faults.takeInterruption() || sender.faults?.interruptsDump() === true;
      outbox.done(message.sequence, isInterrupted ? FLAG.dumpInterrupted : 0);
    }
    if (!isList && (message.flags & FLAG.acknowledge) !== 0) outbox.acknowledge(headOf(message), 0);
  } catch (failure) {
    if (!(failure instanceof Refused)) throw failure;
    outbox.acknowledge(headOf(message), failure.errno);
  }
}

function headOf(message: MessageCursor): MessageHead & { readonly length: number } {
  const { type, flags, sequence, start, end } = message;
  return { type, flags, sequence, length: end - start + 16 };
}
