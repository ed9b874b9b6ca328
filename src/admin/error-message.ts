import { PluginError } from "../errors.ts";

/** The text of an error as the user sees it. */
export function errorMessage(failure: unknown): string {
  if (failure instanceof PluginError && failure.details !== "") return `${failure.message} (${failure.details})`;
  return failure instanceof Error ? failure.message : String(failure);
}
