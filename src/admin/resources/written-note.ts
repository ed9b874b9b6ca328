/** What the user should know about a resource that was just written, by `apply`, `patch`, `edit` or the like. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { readEach } from "../../datastore/read-each.ts";
import { isSelectedBy } from "../../ipam/pools.ts";
import { decodeNode, decodePool } from "../../ipam/records.ts";
import type { ResourceName } from "../../model/keys.ts";
import { NODE, POOL } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { ActionResult } from "./action-result.ts";

interface Target {
  readonly kind: AdminKind;
  readonly name: ResourceName;
}

/** The note never makes a command fail. */
export async function noteOnceWritten(store: Datastore, { kind, name }: Target): Promise<string | undefined> {
  return kind.noteOnceWritten?.(store, name).catch(() => undefined);
}

/** The result with the note; what was left as it was has none. */
export async function withWrittenNote(done: ActionResult, store: Datastore, target: Target): Promise<ActionResult> {
  if (done.action === "unchanged" || done.note !== undefined) return done;
  const note = await noteOnceWritten(store, target);
  return note === undefined ? done : { ...done, note };
}

/** Nothing is assigned from a pool without nodes, unless it is asked for by name. */
export async function noteOfPool(store: Datastore, name: ResourceName): Promise<string | undefined> {
  const { answers } = await store.read([{ kind: "key", key: POOL.key(name) }]);
  const [entry] = answers.flat();
  const pool = entry && decodePool(entry);
  if (pool === undefined || pool.disabled || pool.nodeSelector === "all()") return undefined;
  const { readable: nodes } = readEach(await readAllEntries(store, NODE.prefix()), decodeNode);
  if (nodes.some((node) => isSelectedBy(pool, node))) return undefined;
  const fix = "label a node, or change spec.nodeSelector";
  return `pool ${quoted(pool.name)} selects no node now (${pool.nodeSelector}), so nothing gets an address from it: ${fix}`;
}
