/** One message to the kernel as plain data: a description of the action, and how its payload is written. */
import type { ErrnoName } from "../errno.ts";
import { MessageWriter } from "./message-writer.ts";
import { FLAG } from "./wire.ts";

export interface NetlinkRequest {
  /** What is attempted: the text that follows "Cannot" in an error message. */
  readonly action: string;
  readonly type: number;
  /** In addition to `request`, which every message has. */
  readonly flags: number;
  /** The kernel replies with one message that contains the requested data, so no acknowledgement is needed. */
  readonly isQuestion?: boolean;
  /** The error number that means that the requested object does not exist: not treated as a refusal. */
  readonly whenNone?: ErrnoName;
  /** Writes everything after the netlink header. */
  readonly write: (writer: MessageWriter) => void;
}

/** Asks the kernel to send the resulting object as a message. Not every kernel does, nor for every request. */
export function echoed(request: NetlinkRequest): NetlinkRequest {
  return { ...request, flags: request.flags | FLAG.echo };
}

/** Appends the request to the writer. */
export function writeRequest(
  writer: MessageWriter,
  request: NetlinkRequest,
  sequence: number,
  moreFlags: number,
): void {
  writer.beginMessage(request.type, FLAG.request | request.flags | moreFlags, sequence);
  request.write(writer);
  writer.endMessage();
}

/**
 * Encodes the requests with sequence numbers from `firstSequence` on. The kernel processes them in this order and
 * reports every refusal by itself: when the reply to the last one arrives, all are done.
 */
export function encodeRequests(
  requests: readonly NetlinkRequest[],
  firstSequence: number,
  writer = new MessageWriter(),
): Uint8Array<ArrayBuffer> {
  // A plain loop: the first `forEach` of a process costs a tenth of a millisecond.
  let sequence = firstSequence;
  const last = firstSequence + requests.length - 1;
  for (const request of requests) {
    const asks = sequence === last && request.isQuestion !== true;
    writeRequest(writer, request, sequence++, asks ? FLAG.acknowledge : 0);
  }
  return writer.written();
}
