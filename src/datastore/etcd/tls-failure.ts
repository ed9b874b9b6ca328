/**
 * Of certificates and keys it cannot use `fetch` says only that it opened no
 * socket, as of a port where nobody listens. What is wrong with them is found
 * out here, once that has happened.
 */
import { EtcdFailure } from "./failure.ts";
import type { TlsFiles } from "./tls-files.ts";

const UNUSABLE = {
  stage: "TLS",
  effect: "none",
  cure: "repair",
  advice:
    "check that the client's certificate and key are PEM and belong together, and that the CA file holds whole certificates",
} as const;

/** `undefined` when the files are not to blame. */
export async function failureOfTlsFiles(error: unknown, url: string, tls: TlsFiles): Promise<EtcdFailure | undefined> {
  const isSuspect = error instanceof Error && "code" in error && error.code === "FailedToOpenSocket";
  if (!isSuspect || !url.startsWith("https:")) return undefined;
  const { createSecureContext } = await import("node:tls");
  const { ca, ...own } = tls;
  const parts = [["the CA file", ca === undefined ? {} : { ca }] as const, ["the client's files", own] as const];
  for (const [name, part] of parts) {
    try {
      createSecureContext(part);
    } catch (cause) {
      return new EtcdFailure(UNUSABLE, `${name} cannot be used: ${reasonOf(cause)}`, cause);
    }
  }
  return undefined;
}

function reasonOf(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause);
  return /KEY_VALUES_MISMATCH/.test(message) ? "the key is not that of the certificate" : message;
}
