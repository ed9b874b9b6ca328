/**
 * A gRPC response on an HTTP/2 stream: messages, each prefixed with five bytes
 * that include its length, and a status at the end.
 */
import type { IncomingHttpHeaders } from "node:http2";
import { type EtcdFailure, failureOfResponse, grpcOff, MOST_RESPONSE_BYTES, responseTooLarge } from "./failure.ts";

/** A byte for compression, which is never requested, and four for the length. */
const PREFIX_BYTES = 5;
/** gRPC's status for a service that does not exist. */
const UNIMPLEMENTED = "12";

export function encodeMessage(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(PREFIX_BYTES + message.length);
  new DataView(bytes.buffer).setUint32(1, message.length);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

/** The headers and trailers of a response. */
export type ResponseHeaders = IncomingHttpHeaders & { readonly ":status"?: number };

export function hasStatus(fields: ResponseHeaders): boolean {
  return fields["grpc-status"] !== undefined;
}

export function isGrpc(fields: ResponseHeaders): boolean {
  return String(fields["content-type"] ?? "").startsWith("application/grpc");
}

/** `undefined`: the request succeeded. */
export function failureIn(fields: ResponseHeaders): EtcdFailure | undefined {
  const status = fields["grpc-status"];
  if (status === "0") return undefined;
  const message = plainText(String(fields["grpc-message"] ?? ""));
  if (status === UNIMPLEMENTED) return grpcOff(message, "none");
  if (status !== undefined) return failureOfResponse(Number(status), message);
  const httpStatus = fields[":status"];
  return grpcOff(`HTTP status ${httpStatus}`, httpStatus === 404 ? "none" : "unknown");
}

/** Characters outside ASCII are encoded as %XX. */
function plainText(message: string): string {
  try {
    return decodeURIComponent(message);
  } catch {
    return message;
  }
}

/** Splits the received bytes into messages. */
export class MessageReader {
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
      if (end > MOST_RESPONSE_BYTES) throw responseTooLarge();
      const isWhole = bytes.length >= end;
      if (isWhole) messages.push(bytes.subarray(PREFIX_BYTES, end));
      this.pieces = [isWhole ? bytes.subarray(end) : bytes];
      this.size = bytes.length - (isWhole ? end : 0);
      this.wanted = isWhole ? PREFIX_BYTES : end;
    }
    return messages;
  }
}
