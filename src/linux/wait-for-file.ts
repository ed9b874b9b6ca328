/**
 * Waits until a file has the wanted content, notified by inotify. The folder may not exist at first,
 * and a watch can fail or lose an event, so the file is also polled at a long
 * interval.
 */
import { type FSWatcher, readFileSync, watch } from "node:fs";
import { dirname } from "node:path";
import { after } from "../timers.ts";

const DEFAULT_INTERVAL = 500;

export interface FileWait {
  readonly limitMilliseconds: number;
  /** Whether this is the content that is waited for. */
  readonly isWanted: (text: string) => boolean;
  readonly signal?: AbortSignal;
  /** The interval of polling without notification. */
  readonly paceMilliseconds?: number;
}

/** Returns `timed out` at the limit; an abort rejects with the signal's reason. */
export function waitForFile(path: string, wait: FileWait): Promise<"present" | "timed out"> {
  wait.signal?.throwIfAborted();
  const isPresent = () => hasWanted(path, wait.isWanted);
  if (isPresent()) return Promise.resolve("present");

  const { promise, resolve, reject } = Promise.withResolvers<"present" | "timed out">();
  let watcher: FSWatcher | undefined;
  const look = () => {
    if (isPresent()) resolve("present");
    else watcher ??= watchFolder(dirname(path), look);
  };
  const abort = () => reject(wait.signal?.reason);
  const pace = setInterval(look, wait.paceMilliseconds ?? DEFAULT_INTERVAL);
  const cancelLimit = after(wait.limitMilliseconds, () => resolve(isPresent() ? "present" : "timed out"));
  wait.signal?.addEventListener("abort", abort, { once: true });
  look();
  // The file may have been written between the first check and the watch.
  if (isPresent()) resolve("present");

  return promise.finally(() => {
    watcher?.close();
    clearInterval(pace);
    cancelLimit();
    wait.signal?.removeEventListener("abort", abort);
  });
}

/** A file that does not exist, or cannot be read, is not the wanted one. */
function hasWanted(path: string, isWanted: (text: string) => boolean): boolean {
  try {
    return isWanted(readFileSync(path, "utf8"));
  } catch {
    return false;
  }
}

function watchFolder(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, onChange);
    // Polling continues without it.
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
