/**
 * Why an exchange over HTTP/2 came to nothing. `refused`: the other side has
 * certainly not begun with it. `broken`: it may have. `unspoken`: it did not
 * agree to HTTP/2, and never will.
 */
export class Http2Failure extends Error {
  override readonly name = "Http2Failure";

  constructor(
    readonly kind: "refused" | "broken" | "unspoken",
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause });
  }
}

export const NO_HTTP2 = "what arrives is no HTTP/2";
