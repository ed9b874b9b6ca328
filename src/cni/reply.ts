/** What a plugin's process returns to its caller, as a value: exit code, stdout and stderr. */
import { cniErrorOf } from "../errors.ts";
import { redact } from "../redaction.ts";
import type { CniResult } from "./result.ts";
import { encodeResult } from "./result-conversion.ts";
import type { CniVersion } from "./version.ts";

export interface Reply {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Every command except ADD and VERSION prints nothing when it succeeds. */
export const SILENT_SUCCESS: Reply = { exitCode: 0, stdout: "", stderr: "" };

export function resultReply(result: CniResult, version: CniVersion): Reply {
  return { exitCode: 0, stdout: `${JSON.stringify(encodeResult(result, version))}\n`, stderr: "" };
}

/** One JSON error for anything thrown, with secrets removed whatever its origin. `command`: that of the call, if known. */
export function errorReply(failure: unknown, cniVersion: CniVersion, command = ""): Reply {
  const { code, msg, details } = cniErrorOf(failure);
  const safe = (text: string) => redact(command === "DEL" ? withoutIgnoredWords(text) : text);
  const error = { cniVersion, code, msg: safe(msg), details: details === "" ? undefined : safe(details) };
  return { exitCode: 1, stdout: `${JSON.stringify(error)}\n`, stderr: "" };
}

/**
 * containerd (go-cni) ignores an error of DEL that contains these words: it concludes that nothing is left to delete,
 * and never calls DEL again. They may come from anywhere, for example from the API server or from an IPAM plugin.
 */
function withoutIgnoredWords(text: string): string {
  return text.replaceAll("not found", "missing").replaceAll("no such file or directory", "missing file or directory");
}
