import { PluginError } from "../errors.ts";

/** A failure as the user reads it. */
export function failureText(failure: unknown): string {
  if (failure instanceof PluginError && failure.details !== "") return `${failure.message} (${failure.details})`;
  return failure instanceof Error ? failure.message : String(failure);
}
