/** A commit as a crash point of a test build, named by its change if it is only one. */
import { effectOf } from "../effect.ts";
import type { Change } from "./datastore.ts";

declare const FAULTS: boolean | undefined;

export function commitEffect<Answer>(changes: readonly Change[], commit: () => Promise<Answer>): Promise<Answer> {
  if (typeof FAULTS === "undefined" || !FAULTS) return commit();
  const [first, ...more] = changes.filter(({ kind }) => kind !== "expect");
  if (first === undefined) return commit();
  return effectOf(more.length === 0 ? `datastore commit: ${first.kind} ${first.key}` : "datastore commit", commit);
}
