/**
 * Waits until a file exists, woken by inotify. The folder may be missing at
 * first, and a watch can fail or lose an event, so the file is looked for at a
 * slow pace as well.
 */
import { existsSync, type FSWatcher, watch } from "node:fs";
import { dirname } from "node:path";

const SLOW_PACE = 500;

export interface FileWait {
  readonly limitMilliseconds: number;
  readonly signal?: AbortSignal;
  /** How often to look without being woken. */
  readonly paceMilliseconds?: number;
}

/** Answers `timed out` at the limit; an abort rejects with the signal's reason. */
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
  const pace = setInterval(look, wait.paceMilliseconds ?? SLOW_PACE);
  const limit = setTimeout(() => resolve(existsSync(path) ? "present" : "timed out"), wait.limitMilliseconds);
  wait.signal?.addEventListener("abort", abort, { once: true });
  look();
  // Between the first look and the watch the file may have come.
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
    // The slow pace goes on without it.
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
