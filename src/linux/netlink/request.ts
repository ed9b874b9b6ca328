/** One message to the kernel as plain data: what it attempts, and how its payload is written. */
import type { ErrnoName } from "../errno.ts";
import { MessageWriter } from "./message-writer.ts";
import { FLAG } from "./wire.ts";

export interface NetlinkRequest {
  /** What is attempted, as it reads after "Cannot" in an error message. */
  readonly action: string;
  readonly type: number;
  /** Beside `request`, which every message bears. */
  readonly flags: number;
  /** Answered by one message that tells what was asked for: then no acknowledgement is needed beside it. */
  readonly isQuestion?: boolean;
  /** How the kernel says that there is nothing of the kind: an answer, and no refusal. */
  readonly whenNone?: ErrnoName;
  /** Writes everything behind the netlink header. */
  readonly write: (writer: MessageWriter) => void;
}

/** Asks the kernel to tell also what came of it, as a message. Not every kernel does, nor for every request. */
export function echoed(request: NetlinkRequest): NetlinkRequest {
  return { ...request, flags: request.flags | FLAG.echo };
}

/** Appends the request to what the writer holds. */
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
 * The bytes of requests that follow each other from `firstSequence` on. The kernel does them in this order and tells
 * every refusal unasked: when the last one is answered, all are done.
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
