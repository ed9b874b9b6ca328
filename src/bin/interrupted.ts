/** The answer of a call that was told to stop. Loaded when it comes to that. */
import { type Answer, errorAnswer } from "../cni/answer.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";

export function interruptedBy(signal: string): PluginError {
  return new PluginError("interrupted", `Cannot finish: stopped by ${signal}`);
}

export function interruptedAnswer(signal: string): Answer {
  return errorAnswer(interruptedBy(signal), NEWEST_VERSION);
}
