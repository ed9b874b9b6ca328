/**
 * The revisions of the orchestrator's API that the kernel of this host may already have, kept over restarts of the agent.
 * A new process lists what is not older: from the API server's own copy, which may be behind that of another server.
 *
 * They are written before anything is done with the records, and only if one has changed: 37 µs of processor time each.
 */
import * as v from "valibot";
import type { SeenRevisions } from "../../datastore/replica/feed.ts";
import type { FileFolder } from "../../linux/file-folder.ts";

/** In the run directory: after a reboot the kernel has nothing. */
export const SEEN_REVISIONS_FILE = "seen-revisions.json";

const SCHEMA = v.record(v.string(), v.pipe(v.string(), v.regex(/^\d+$/)));

/** `report`: why they are not kept. Then the next process reads the present state, which is never older. */
export function keepSeenRevisions(folder: FileFolder, report: (problem: string) => void): SeenRevisions {
  const revisions = new Map(Object.entries(readRevisions(folder)));
  const place = `"${folder.path}/${SEEN_REVISIONS_FILE}"`;
  const forget = () => {
    try {
      folder.remove(SEEN_REVISIONS_FILE);
    } catch (failure) {
      report(`Cannot remove ${place}: ${failure}`);
    }
  };
  return {
    find: (watched) => revisions.get(watched),
    note: (watched, revision) => {
      revisions.set(watched, revision);
      try {
        folder.write(SEEN_REVISIONS_FILE, `${JSON.stringify(Object.fromEntries(revisions))}\n`);
      } catch (failure) {
        report(`Cannot write ${place}: ${failure}`);
        // An older revision than the kernel's must not stay.
        forget();
      }
    },
  };
}

/** None if they cannot be read: there are none yet, or another version wrote them. */
function readRevisions(folder: FileFolder): Readonly<Record<string, string>> {
  try {
    return v.parse(SCHEMA, JSON.parse(folder.read(SEEN_REVISIONS_FILE)));
  } catch {
    return {};
  }
}
