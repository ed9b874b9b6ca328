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

/** One JSON error for anything thrown, with secrets removed whatever its origin. */
export function errorReply(failure: unknown, cniVersion: CniVersion): Reply {
  const { code, msg, details } = cniErrorOf(failure);
  const error = { cniVersion, code, msg: redact(msg), details: details === "" ? undefined : redact(details) };
  return { exitCode: 1, stdout: `${JSON.stringify(error)}\n`, stderr: "" };
}
