/** How a call ended. The numbers are those of gRPC. */
const STATUS_CODES = {
  unknown: 2,
  "invalid-argument": 3,
  "deadline-exceeded": 4,
  "not-found": 5,
  "already-exists": 6,
  "permission-denied": 7,
  "resource-exhausted": 8,
  "failed-precondition": 9,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const;

export type GrpcStatus = keyof typeof STATUS_CODES;

/** A call fails with this status; the client sees the message. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";

  constructor(
    readonly status: GrpcStatus,
    message: string,
  ) {
    super(message);
  }
}

/** The fields of a response that end a failed call. An error without a status has the status "unknown". */
export function failureFields(failure: unknown): Readonly<Record<"grpc-status" | "grpc-message", string>> {
  const status = failure instanceof GrpcError ? failure.status : "unknown";
  const message = failure instanceof Error ? failure.message : String(failure);
  return { "grpc-status": String(STATUS_CODES[status]), "grpc-message": encodedText(message) };
}

/** Bytes outside of printable ASCII, and "%", as %XX of UTF-8. */
function encodedText(message: string): string {
  return message.toWellFormed().replace(/[^ -$&-~]+/gu, (characters) => {
    let encoded = "";
    for (const byte of Buffer.from(characters)) encoded += `%${byte.toString(16).toUpperCase().padStart(2, "0")}`;
    return encoded;
  });
}
