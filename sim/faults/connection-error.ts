import type { RequestFailed } from "./network.ts";

/** As a socket or a time limit reports it. */
export function connectionError({ reason, message }: RequestFailed): Error {
  if (reason === "silence") return Object.assign(new Error(message), { name: "TimeoutError" });
  return Object.assign(new Error(message), { code: reason === "refused" ? "ECONNREFUSED" : "ECONNRESET" });
}
