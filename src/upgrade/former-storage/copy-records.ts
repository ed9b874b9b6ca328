/**
 * Makes the present storage contain what the former one does. Each record is written by itself, with a precondition, so
 * that it can be repeated after an interruption anywhere: what is there already is not written again.
 */
import { counted } from "../../counted.ts";
import type { Change, Datastore, Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { parseKey } from "../../model/keys.ts";
import { compareRecords, type Difference, describeDifference } from "./compare.ts";
import type { CopiedRecord } from "./conversion.ts";
import { readRecords } from "./stored-records.ts";

/** Requests at once. */
const AT_ONCE = 16;
/** Records between two lines of progress. */
const LINE_EVERY = 2_000;

export interface CopyOptions {
  readonly store: Datastore;
  readonly prefixes: readonly string[];
  /** What was read before, and decided from: a record that has changed since is not written. Absent: it is read now. */
  readonly present?: ReadonlyMap<string, Entry>;
  progress(line: string): void;
}

/** Throws if there is a resource that is not a copy, or if others write at the same time. */
export async function copyRecords(wanted: readonly CopiedRecord[], options: CopyOptions): Promise<void> {
  const present = options.present ?? (await readRecords(options.store, options.prefixes));
  const differences = compareRecords(wanted, present);
  refuseForeign(differences);
  if (differences.length === 0) return;
  options.progress(`Copying ${counted(differences.length, "record")}`);
  let copied = 0;
  for (const group of inOrder(differences)) {
    for (let start = 0; start < group.length; start += AT_ONCE) {
      const some = group.slice(start, start + AT_ONCE);
      await Promise.all(some.map((each) => write(options.store, each)));
      if (Math.floor(copied / LINE_EVERY) < Math.floor((copied + some.length) / LINE_EVERY)) {
        options.progress(`${copied + some.length} of ${differences.length} are copied`);
      }
      copied += some.length;
    }
  }
}

function refuseForeign(differences: readonly Difference[]): void {
  const foreign = differences.filter((each) => each.kind === "different" && !each.isCopy);
  if (foreign.length === 0) return;
  throw new PluginError(
    "resource-exists",
    `Cannot copy the resources: ${foreign.slice(0, 5).map(describeDifference).join("; ")}`,
    {
      details:
        "these were created in the new storage by something else; delete them there, and run upgrade apply again",
    },
  );
}

/** The first record is the lock; of the others each kind is complete before the next begins. */
function inOrder(differences: readonly Difference[]): readonly (readonly Difference[])[] {
  const groups = new Map<string, Difference[]>();
  for (const each of differences) {
    const { key } = each.kind === "surplus" ? each.present : each.wanted;
    const parts = parseKey(key);
    const group = parts?.kind === "resource" ? parts.plural : String(parts?.kind);
    const known = groups.get(group);
    if (known === undefined) groups.set(group, [each]);
    else known.push(each);
  }
  return [...groups.values()];
}

async function write(store: Datastore, difference: Difference): Promise<void> {
  const change = changeOf(difference);
  const written = await store.commit([change]);
  if (!written.ok && !(await isWritten(store, difference))) {
    throw new PluginError("resource-changed", `Cannot copy "${change.key}": another program has written it meanwhile`, {
      details: "run upgrade apply again",
    });
  }
}

/** By a request of this run that had no response, and came late. */
async function isWritten(store: Datastore, difference: Difference): Promise<boolean> {
  const { key } = difference.kind === "surplus" ? difference.present : difference.wanted;
  const found = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
  if (difference.kind === "surplus") return found === undefined;
  return found !== undefined && compareRecords([difference.wanted], new Map([[key, found]])).length === 0;
}

function changeOf(difference: Difference): Change {
  switch (difference.kind) {
    case "missing": {
      const { key, value, node } = difference.wanted;
      return { kind: "create", key, value, ...(node === undefined ? {} : { node }) };
    }
    case "different": {
      const { key, value, node } = difference.wanted;
      const { revision } = difference.present;
      return { kind: "update", key, value, revision, ...(node === undefined ? {} : { node }) };
    }
    case "surplus":
      return { kind: "delete", key: difference.present.key, revision: difference.present.revision };
  }
}
