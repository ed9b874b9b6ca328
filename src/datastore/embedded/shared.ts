/**
 * One open file for all calls of a process that stays: to open it anew takes
 * longer than all that a call reads and writes.
 *
 * It is let go when nobody has used it for a while, or when the path leads to
 * another file than before: whoever moved the old one away means the new one.
 */
import { placeOf } from "../../linux/files.ts";
import type { Datastore } from "../datastore.ts";

const IDLE_MILLISECONDS = 10_000;

interface SharedFile {
  readonly place: string;
  readonly store: Datastore;
  users: number;
  closing?: ReturnType<typeof setTimeout> | undefined;
}

const files = new Map<string, SharedFile>();

/** `open` is called where the file is not open yet. `close()` of what it answers gives it back. */
export async function shareFile(path: string, open: () => Promise<Datastore>): Promise<Datastore> {
  const place = placeOf(path);
  const known = files.get(path);
  if (known !== undefined && known.place === place) return useOf(path, known);
  if (known !== undefined) forget(path, known);

  const store = await open();
  // Another call may have opened it meanwhile; then there are two, and each is closed in its time.
  const opened: SharedFile = { place: placeOf(path) ?? "", store, users: 0 };
  files.set(path, opened);
  return useOf(path, opened);
}

function useOf(path: string, file: SharedFile): Datastore {
  file.users += 1;
  clearTimeout(file.closing);
  const { store } = file;
  const closing = new AbortController();
  return {
    read: (wanted) => store.read(wanted),
    commit: (changes) => store.commit(changes),
    watch: (prefix, from, signal) => store.watch(prefix, from, AbortSignal.any([signal, closing.signal])),
    close: async () => {
      if (closing.signal.aborted) return;
      closing.abort();
      file.users -= 1;
      if (file.users > 0) return;
      if (files.get(path) === file) file.closing = setTimeout(forget, IDLE_MILLISECONDS, path, file).unref();
      else await store.close();
    },
  };
}

/** Closes it now, or with its last user. */
function forget(path: string, file: SharedFile): void {
  if (files.get(path) === file) files.delete(path);
  clearTimeout(file.closing);
  if (file.users === 0) void file.store.close();
}
