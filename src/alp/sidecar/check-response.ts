/** What Envoy is told: `CheckResponse` of its external authorization, v2 and v3 alike. Pure. */
import { delimited, message, varint } from "../../grpc/protobuf.ts";

const PERMISSION_DENIED = 7n;
const FORBIDDEN = 403n;
/** For the client, which must not learn the names of policies. */
const BODY = "Denied by network policy\n";

const status = (code: bigint) => delimited(1, varint(1, code));

/** Status OK. */
export const ALLOWED: Uint8Array = delimited(1, "");

/** The HTTP response is not used for connections that are not HTTP: Envoy closes them. */
export const DENIED: Uint8Array = message(
  status(PERMISSION_DENIED),
  delimited(2, message(status(FORBIDDEN), delimited(3, BODY))),
);
