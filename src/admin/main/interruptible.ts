/**
 * Wraps a command's context so that its abort signal ends every wait: for a
 * datastore that does not respond, for standard input, for time to pass.
 *
 * Reads end at once, commits do not: a commit in progress is awaited, and a
 * command may still undo what it had begun. Since every decision starts with a
 * read, nothing new is started after the signal.
 */

import type { Datastore, OrderedChange, Wanted } from "../../datastore/datastore.ts";
import { transactOn } from "../../datastore/transact.ts";
import { unlessAborted } from "../../timers.ts";
import { paintStderr } from "../terminal/paint.ts";
import type { Call, Clock, Context, Terminal } from "./context.ts";

export function interruptible(context: Context): Context {
  const { signal } = context;
  return {
    ...context,
    readFile: (path) => unlessStopped(signal, () => context.readFile(path)),
    readOwnFile: (path) => unlessStopped(signal, () => context.readOwnFile(path)),
    readStdin: () => unlessStopped(signal, () => context.readStdin()),
    listFolder: (path) => unlessStopped(signal, () => context.listFolder(path)),
    wait: (milliseconds) => unlessStopped(signal, () => context.wait(milliseconds)),
    async openDatastore(settings) {
      signal.throwIfAborted();
      const opening = context.openDatastore(settings);
      try {
        return interruptibleStore(await unlessStopped(signal, () => opening), context);
      } catch (failure) {
        // A datastore that opens after the signal must still be closed.
        void opening.then(
          (store) => store.close(),
          () => {},
        );
        throw failure;
      }
    },
  };
}

/** How long a commit may continue after the signal before a note is printed. */
const QUIET_MILLISECONDS = 500;

function interruptibleStore(store: Datastore, context: Call & Terminal & Clock): Datastore {
  const { signal } = context;
  const commits = new Set<Promise<unknown>>();
  const reportCommits = () => void reportIfPending(commits, context);
  signal.addEventListener("abort", reportCommits, { once: true });
  const stoppable: Datastore = {
    atomicity: store.atomicity,
    isOrchestratorApi: store.isOrchestratorApi,
    async read(wanted: readonly Wanted[], at?: string) {
      // A store that responds without yielding would keep the process from handling any signal.
      await new Promise((resolve) => setImmediate(resolve));
      return unlessStopped(signal, () => store.read(wanted, at));
    },
    commit(changes: readonly OrderedChange[]) {
      const committing = store.commit(changes);
      commits.add(committing);
      return committing.finally(() => commits.delete(committing));
    },
    transact: (wanted, decide) => transactOn(stoppable, wanted, decide),
    clock: () => store.clock?.(),
    watch: (prefix, from, stop) => store.watch(prefix, from, AbortSignal.any([stop, signal])),
    async close() {
      await Promise.allSettled(commits);
      signal.removeEventListener("abort", reportCommits);
      await store.close();
    },
  };
  return stoppable;
}

async function reportIfPending(commits: ReadonlySet<unknown>, context: Call & Terminal & Clock): Promise<void> {
  await context.wait(QUIET_MILLISECONDS);
  if (commits.size === 0) return;
  const note =
    "a write is in progress and will be completed; a second signal stops immediately and leaves its outcome unknown";
  context.stderr(`${paintStderr(context).yellow("note:")} ${note}\n`);
}

/** Nothing begins after the signal has fired. */
async function unlessStopped<Result>(signal: AbortSignal, work: () => Promise<Result>): Promise<Result> {
  signal.throwIfAborted();
  return unlessAborted(work(), signal);
}
