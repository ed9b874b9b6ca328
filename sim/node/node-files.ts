/**
 * The files of a simulated machine, and the locks on them. What is on its disk stays when the machine is switched off; what
 * is in memory, below `/run` and `/var/run`, is gone then. A lock is gone when the process that holds it dies.
 */

import { type HintStore, type HostHints, NO_HINTS } from "../../src/ipam/hints.ts";
import type { HostLocks } from "../../src/ipam/host-turn.ts";
import type { FileFolder } from "../../src/linux/file-folder.ts";
import type { FileWait } from "../../src/linux/wait-for-file.ts";
import type { SimulatedProcess } from "../schedule/process.ts";

const IN_MEMORY = ["/run/", "/var/run/"];
/** How often a process looks at a file that it waits for, whatever it is told. */
const LOOK_MILLISECONDS = 500;

export class NodeFiles {
  private readonly texts = new Map<string, string>();
  private readonly hints = new Map<string, HostHints>();
  private readonly locks = new Map<string, SimulatedProcess>();
  /** When something in a folder was changed. */
  private readonly folders = new Map<string, bigint>();
  private readonly listeners = new Set<() => void>();
  private changes = 0n;

  /** Another one after each change of a file. */
  get revision(): bigint {
    return this.changes;
  }

  read(path: string): string | undefined {
    return this.texts.get(path);
  }

  write(path: string, text: string): void {
    this.texts.set(path, text);
    this.changed(path);
  }

  remove(path: string): void {
    if (this.texts.delete(path)) this.changed(path);
  }

  /** The names of the files directly in it, sorted; `undefined` if it does not exist. */
  list(folder: string): readonly string[] | undefined {
    if (!this.folders.has(folder)) return undefined;
    const start = `${folder}/`;
    const paths = [...this.texts.keys()].filter((path) => path.startsWith(start));
    return paths
      .map((path) => path.slice(start.length))
      .filter((name) => !name.includes("/"))
      .sort();
  }

  /** By name. */
  in(folder: string): ReadonlyMap<string, string> {
    return new Map((this.list(folder) ?? []).map((name) => [name, this.texts.get(`${folder}/${name}`) ?? ""]));
  }

  /** The machine was switched off. */
  forgetMemory(): void {
    const isInMemory = (path: string) => IN_MEMORY.some((start) => path.startsWith(start));
    this.changes += 1n;
    for (const map of [this.texts, this.hints, this.locks, this.folders]) {
      for (const path of [...map.keys()]) if (isInMemory(path)) map.delete(path);
    }
  }

  hintsAt(process: SimulatedProcess, path: string): HintStore {
    return {
      load: async () => this.hints.get(path) ?? NO_HINTS,
      save: async (hints) => process.effect(() => void this.hints.set(path, hints)),
    };
  }

  locksFor(process: SimulatedProcess): HostLocks {
    return {
      tryLock: (path) => {
        const holder = this.locks.get(path);
        if (holder?.isAlive === true) return undefined;
        this.locks.set(path, process);
        return () => {
          if (this.locks.get(path) === process) this.locks.delete(path);
        };
      },
    };
  }

  isLocked(path: string): boolean {
    return this.locks.get(path)?.isAlive === true;
  }

  openFolder(process: SimulatedProcess, path: string): FileFolder {
    const create = () => {
      if (!this.folders.has(path)) this.changed(`${path}/`);
    };
    return {
      path,
      list: () => {
        create();
        return this.list(path) ?? [];
      },
      read: (name) => {
        const text = this.read(`${path}/${name}`);
        if (text === undefined) throw new Error(`no file ${name}`);
        return text;
      },
      write: (name, text) => process.effect(() => this.write(`${path}/${name}`, text)),
      remove: (name) => process.effect(() => this.remove(`${path}/${name}`)),
      changedAt: () => this.folders.get(path),
    };
  }

  /** As `src/linux/wait-for-file.ts`: woken by changes, and looks now and then besides. */
  async waitForFile(process: SimulatedProcess, path: string, wait: FileWait): Promise<"present" | "timed out"> {
    const { limitMilliseconds, isWanted, signal } = wait;
    const endsAt = process.elapsed() + limitMilliseconds;
    for (;;) {
      signal?.throwIfAborted();
      const text = this.read(path);
      if (text !== undefined && isWanted(text)) return "present";
      const left = endsAt - process.elapsed();
      if (left <= 0) return "timed out";
      const news = new AbortController();
      // The waiting process runs on in an event of its own, not in that of the writer.
      const wake = () => void process.scheduler.after(0, () => news.abort());
      this.listeners.add(wake);
      const stop = signal === undefined ? news.signal : AbortSignal.any([signal, news.signal]);
      await process.wait(Math.min(left, LOOK_MILLISECONDS), stop);
      this.listeners.delete(wake);
    }
  }

  private changed(path: string): void {
    this.changes += 1n;
    this.folders.set(path.slice(0, path.lastIndexOf("/")), this.changes);
    for (const wake of [...this.listeners]) wake();
  }
}
