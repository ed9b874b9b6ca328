import { PluginError } from "../../src/errors.ts";

/** The failure that an action must end with. */
export function thrownBy(action: () => unknown): PluginError {
  try {
    action();
  } catch (failure) {
    if (failure instanceof PluginError) return failure;
    throw failure;
  }
  throw new Error("Nothing was thrown");
}

/** Like `thrownBy`, of something that takes its time. */
export async function rejectionOf(action: () => Promise<unknown>): Promise<PluginError> {
  try {
    await action();
  } catch (failure) {
    if (failure instanceof PluginError) return failure;
    throw failure;
  }
  throw new Error("Nothing was thrown");
}
