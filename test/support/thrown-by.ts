import { PluginError } from "../../src/errors.ts";

/** Returns what the action throws; fails if it throws nothing. */
export function thrownBy(action: () => unknown): PluginError {
  try {
    action();
  } catch (failure) {
    if (failure instanceof PluginError) return failure;
    throw failure;
  }
  throw new Error("Nothing was thrown");
}

/** Like `thrownBy`, for asynchronous actions. */
export async function rejectionOf(action: () => Promise<unknown>): Promise<PluginError> {
  try {
    await action();
  } catch (failure) {
    if (failure instanceof PluginError) return failure;
    throw failure;
  }
  throw new Error("Nothing was thrown");
}
