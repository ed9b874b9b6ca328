/** `--dry-run`: the command does all of its work, on a datastore that keeps the writes to itself. */

import type { Datastore } from "../../datastore/datastore.ts";
import type { Given } from "../main/command.ts";
import type { Clock } from "../main/context.ts";
import { DRY_RUN_OPTION } from "./options.ts";
import { openOverlay } from "./overlay-store.ts";

export function isDryRun(given: Given): boolean {
  return (given.values.get(DRY_RUN_OPTION.name) ?? "none") !== "none";
}

interface Surroundings<C extends Clock> {
  readonly store: Datastore;
  readonly context: C;
}

/** What the work of a command is done with: nothing is written, and there is nothing to wait for. */
export function surroundingsOf<C extends Clock>(given: Given, { store, context }: Surroundings<C>): Surroundings<C> {
  if (!isDryRun(given)) return { store, context };
  return { store: openOverlay(store), context: { ...context, wait: async () => {} } };
}
