/** One message to the kernel as plain data: what it attempts, and how its payload is written. */
import { MessageWriter } from "./message-writer.ts";
import { FLAG } from "./wire.ts";

export interface NetlinkRequest {
  /** What is attempted, as it reads after "Cannot" in an error message. */
  readonly action: string;
  readonly type: number;
  /** Beside `request`, which every message bears. */
  readonly flags: number;
  /** Writes everything behind the netlink header. */
  readonly write: (writer: MessageWriter) => void;
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

/** The bytes of requests that follow each other from `firstSequence` on, each to be acknowledged. */
export function encodeRequests(requests: readonly NetlinkRequest[], firstSequence: number): Uint8Array<ArrayBuffer> {
  const writer = new MessageWriter();
  // A plain loop: the first `forEach` of a process costs a tenth of a millisecond.
  let sequence = firstSequence;
  for (const request of requests) writeRequest(writer, request, sequence++, FLAG.acknowledge);
  return writer.written();
}
