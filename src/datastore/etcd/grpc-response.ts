/** The headers and trailers of a gRPC response on an HTTP/2 stream: it has a status at the end. */
import type { IncomingHttpHeaders } from "node:http2";
import { type EtcdFailure, failureOfResponse, grpcOff } from "./failure.ts";

/** gRPC's status for a service that does not exist. */
const UNIMPLEMENTED = "12";

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
