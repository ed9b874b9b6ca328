/**
 * For certificates and keys that it cannot use, `fetch` only reports that it
 * opened no socket, as for a closed port. After such a failure, this file finds
 * out whether the certificate files are the reason.
 */
import { EtcdFailure } from "./failure.ts";
import type { TlsFiles } from "./tls-files.ts";

const UNUSABLE = {
  stage: "TLS",
  effect: "none",
  cure: "repair",
  advice:
    "check that the client's certificate and key are PEM and belong together, and that the CA file contains complete certificates",
} as const;

/** `undefined` if the files are not the reason. */
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
  return /KEY_VALUES_MISMATCH/.test(message) ? "the key does not belong to the certificate" : message;
}
