/** What a plugin's process gives back to its caller, as a value. */
import { cniErrorOf } from "../errors.ts";
import { redact } from "../redaction.ts";
import type { CniResult } from "./result.ts";
import { encodeResult } from "./result-conversion.ts";
import type { CniVersion } from "./version.ts";

export interface Answer {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Success of every command but ADD and VERSION says nothing. */
export const SILENT_SUCCESS: Answer = { exitCode: 0, stdout: "", stderr: "" };

export function resultAnswer(result: CniResult, version: CniVersion): Answer {
  return { exitCode: 0, stdout: `${JSON.stringify(encodeResult(result, version))}\n`, stderr: "" };
}

/** One JSON error for anything thrown, free of secrets whoever worded it. */
export function errorAnswer(failure: unknown, cniVersion: CniVersion): Answer {
  const { code, msg, details } = cniErrorOf(failure);
  const error = { cniVersion, code, msg: redact(msg), details: details === "" ? undefined : redact(details) };
  return { exitCode: 1, stdout: `${JSON.stringify(error)}\n`, stderr: "" };
}
