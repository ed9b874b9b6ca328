/**
 * Waits until a file exists, notified by inotify. The folder may not exist at first,
 * and a watch can fail or lose an event, so the file is also polled at a long
 * interval.
 */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

const DEFAULT_INTERVAL = 500;

export interface FileWait {
  readonly limitMilliseconds: number;
  readonly signal?: AbortSignal;
  /** The interval of polling without notification. */
  readonly paceMilliseconds?: number;
}

/** Returns `timed out` at the limit; an abort rejects with the signal's reason. */
export function waitForFile(path: string, wait: FileWait): Promise<"present" | "timed out"> {
  wait.signal?.throwIfAborted();
  if (existsSync(path)) return Promise.resolve("present");

  const { promise, resolve, reject } = Promise.withResolvers<"present" | "timed out">();
  let watcher: FSWatcher | undefined;
  const look = () => {
    if (existsSync(path)) resolve("present");
    else watcher ??= watchFolder(dirname(path), look);
  };
  const abort = () => reject(wait.signal?.reason);
  const pace = setInterval(look, wait.paceMilliseconds ?? DEFAULT_INTERVAL);
  const limit = setTimeout(() => resolve(existsSync(path) ? "present" : "timed out"), wait.limitMilliseconds);
  wait.signal?.addEventListener("abort", abort, { once: true });
  look();
  // The file may have been created between the first check and the watch.
  if (existsSync(path)) resolve("present");

  return promise.finally(() => {
    watcher?.close();
    clearInterval(pace);
    clearTimeout(limit);
    wait.signal?.removeEventListener("abort", abort);
  });
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
