/**
 * An answer of gRPC as it comes in on a stream of HTTP/2: messages, each behind
 * five bytes that tell its length, and at the end a status.
 */
import type { StreamEvents } from "../../http2/stream.ts";
import { type EtcdFailure, failureOfAnswer, failureOfConnection, grpcOff } from "./failure.ts";

/** A byte for compression, which is never asked for, and four for the length. */
const PREFIX_BYTES = 5;
/** gRPC's word for a service that is not there. */
const UNIMPLEMENTED = "12";

export interface AnswerEvents {
  message(bytes: Uint8Array): void;
  /** Nothing comes after it. */
  end(failure: EtcdFailure | undefined): void;
}

export function encodeMessage(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(PREFIX_BYTES + message.length);
  new DataView(bytes.buffer).setUint32(1, message.length);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

export function readAnswer(events: AnswerEvents): StreamEvents {
  const reader = new MessageReader();
  const seen = new Map<string, string>();
  return {
    headers: (fields) => {
      for (const [name, value] of fields) seen.set(name, value);
    },
    data: (bytes) => {
      for (const message of reader.read(bytes)) events.message(message);
    },
    end: () => events.end(failureIn(seen)),
    failed: (error) => events.end(failureOfConnection(error)),
  };
}

function failureIn(fields: ReadonlyMap<string, string>): EtcdFailure | undefined {
  const status = fields.get("grpc-status");
  if (status === "0") return undefined;
  const message = plainText(fields.get("grpc-message") ?? "");
  if (status === UNIMPLEMENTED) return grpcOff(message, "none");
  if (status !== undefined) return failureOfAnswer(Number(status), message);
  const httpStatus = fields.get(":status") ?? "missing";
  return grpcOff(`HTTP status ${httpStatus}`, httpStatus === "404" ? "none" : "unknown");
}

/** Letters beyond ASCII are written as %XX. */
function plainText(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

class MessageReader {
  private pieces: Uint8Array[] = [];
  private size = 0;
  private wanted = PREFIX_BYTES;

  read(piece: Uint8Array): readonly Uint8Array[] {
    const messages: Uint8Array[] = [];
    this.pieces.push(piece);
    this.size += piece.length;
    while (this.size >= this.wanted) {
      const bytes = this.pieces.length === 1 ? (this.pieces[0] ?? piece) : Buffer.concat(this.pieces);
      const end = PREFIX_BYTES + new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
      const isWhole = bytes.length >= end;
      if (isWhole) messages.push(bytes.subarray(PREFIX_BYTES, end));
      this.pieces = [isWhole ? bytes.subarray(end) : bytes];
      this.size = bytes.length - (isWhole ? end : 0);
      this.wanted = isWhole ? PREFIX_BYTES : end;
    }
    return messages;
  }
}
