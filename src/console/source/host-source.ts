/** The host that `vendorctl console` runs on, as the user who has started it may see it. */
import type { Context } from "../../admin/main/context.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ConsoleSource } from "../source.ts";

/** `store` belongs to the caller: the source does not close it. */
export async function openHostSource(
  _context: Context,
  _store: Datastore,
  _signal: AbortSignal,
): Promise<ConsoleSource> {
  throw new PluginError("internal", "Cannot show this host: not built yet");
}
