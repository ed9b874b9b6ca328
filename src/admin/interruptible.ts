/**
 * A command's surroundings, so that its abort signal ends every wait: for a
 * datastore that does not respond, for standard input, for time to pass.
 *
 * Reads end at once, commits do not: one that is under way is waited for, and
 * what a command had begun it may still undo. Since every decision begins with a
 * read, nothing new is begun after the signal.
 */
import type { Change, Datastore, Wanted } from "../datastore/datastore.ts";
import { transactOn } from "../datastore/transact.ts";
import type { Context } from "./command.ts";
import { paintComplaint } from "./paint.ts";

export function interruptible(context: Context): Context {
  const { signal } = context;
  return {
    ...context,
    readFile: (path) => unlessAborted(signal, () => context.readFile(path)),
    readStdin: () => unlessAborted(signal, () => context.readStdin()),
    listFolder: (path) => unlessAborted(signal, () => context.listFolder(path)),
    wait: (milliseconds) => unlessAborted(signal, () => context.wait(milliseconds)),
    async openDatastore(settings) {
      signal.throwIfAborted();
      const opening = context.openDatastore(settings);
      try {
        return interruptibleStore(await unlessAborted(signal, () => opening), context);
      } catch (failure) {
        // One that opens too late is closed by whoever asked for it.
        void opening.then(
          (store) => store.close(),
          () => {},
        );
        throw failure;
      }
    },
  };
}

/** How long a commit may go on after the signal before the user is told. */
const QUIET_MILLISECONDS = 500;

function interruptibleStore(store: Datastore, context: Context): Datastore {
  const { signal } = context;
  const commits = new Set<Promise<unknown>>();
  const tellOfCommits = () => void tellIfPending(commits, context);
  signal.addEventListener("abort", tellOfCommits, { once: true });
  const stoppable: Datastore = {
    async read(wanted: readonly Wanted[], at?: string) {
      // A store that responds without waiting would keep the process from noticing any signal.
      await new Promise((resolve) => setImmediate(resolve));
      return unlessAborted(signal, () => store.read(wanted, at));
    },
    commit(changes: readonly Change[]) {
      const committing = store.commit(changes);
      commits.add(committing);
      return committing.finally(() => commits.delete(committing));
    },
    transact: (wanted, decide) => transactOn(stoppable, wanted, decide),
    watch: (prefix, from, stop) => store.watch(prefix, from, AbortSignal.any([stop, signal])),
    async close() {
      await Promise.allSettled(commits);
      signal.removeEventListener("abort", tellOfCommits);
      await store.close();
    },
  };
  return stoppable;
}

async function tellIfPending(commits: ReadonlySet<unknown>, context: Context): Promise<void> {
  await context.wait(QUIET_MILLISECONDS);
  if (commits.size === 0) return;
  const note =
    "a write is under way and will be finished; a second signal stops at once, and leaves its outcome unknown";
  context.stderr(`${paintComplaint(context).yellow("note:")} ${note}\n`);
}

/** Throws the signal's reason as soon as it fires; the work itself then goes on unobserved. */
async function unlessAborted<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const stop = () => reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    return await Promise.race([work(), stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
