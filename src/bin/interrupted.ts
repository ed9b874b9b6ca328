/** The reply of a call that was stopped by a signal. Loaded only then. */
import { errorReply, type Reply } from "../cni/reply.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { PluginError } from "../errors.ts";

export function interruptedBy(signal: string): PluginError {
  return new PluginError("interrupted", `Cannot finish: stopped by ${signal}`);
}

export function interruptedReply(signal: string): Reply {
  return errorReply(interruptedBy(signal), NEWEST_VERSION);
}
