/**
 * The pods of this node that a release before v3.29 has given a directory for its sidecar's socket, by a FlexVolume or by its
 * CSI driver. Both leave the same on the host, and remove it with the pod:
 *
 *   ROOT/creds/ID.json   which pod it is: {"UID": …, "Workload": …, "Namespace": …, "ServiceAccount": …}
 *   ROOT/mount/ID/       directory, mounted in the pod at /var/run/felix/nodeagent; the agent listens at `socket` in it
 *
 * Only root writes to ROOT and to its two directories; a pod may write to its own below `mount`. A pod has gone if its record
 * is not there: one that cannot be read, for want of descriptors for example, is still served. Of two directories of one pod
 * the first by name is served.
 */
import { lstatSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import type { SidecarVolume, SidecarVolumes } from "../feed/sidecar-volumes.ts";

const RECORD = ".json";
const UNREADABLE = Symbol("unreadable");

export class SyncVolumes implements SidecarVolumes {
  readonly recovered: ReadonlySet<string>;
  /** By the name of the record, in order. */
  private byRecord: ReadonlyMap<string, SidecarVolume> = new Map();
  private known: ReadonlyMap<string, SidecarVolume> = new Map();
  private problems = new Set<string>();
  private readonly listeners = new Set<() => void>();

  /** Those that are there now count as recovered: their pods ran before this agent. `report`: what cannot be read, once. */
  constructor(
    private readonly root: string,
    private readonly report: (problem: string) => void,
  ) {
    this.refresh();
    this.recovered = new Set(this.known.keys());
  }

  get all(): ReadonlyMap<string, SidecarVolume> {
    return this.known;
  }

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Looks for pods that have come or gone. Returns whether this node has a directory for them. */
  refresh(): boolean {
    const problems = new Set<string>();
    const directory = join(this.root, "creds");
    const names = attempt(directory, problems, () => readdirSync(directory).sort());
    if (names !== UNREADABLE && (names !== undefined || this.known.size > 0)) this.update(names ?? [], problems);
    for (const problem of problems.difference(this.problems)) this.report(problem);
    this.problems = problems;
    return names !== undefined;
  }

  private update(names: readonly string[], problems: Set<string>): void {
    const before = this.byRecord;
    const now = new Map<string, SidecarVolume>();
    for (const name of names) {
      const volume = this.volumeOf(name, problems);
      if (volume !== undefined) now.set(name, volume);
    }
    if (Bun.deepEquals([...before], [...now])) return;
    this.byRecord = now;
    this.known = firstByUid(now.values());
    for (const listener of this.listeners) listener();
    for (const [name, { directory }] of before) if (!now.has(name)) this.removeLeft(name, directory, problems);
  }

  /** What is known already stays if it cannot be read now. */
  private volumeOf(name: string, problems: Set<string>): SidecarVolume | undefined {
    if (!name.endsWith(RECORD) || name.startsWith(".")) return undefined;
    const directory = join(this.root, "mount", name.slice(0, -RECORD.length));
    const path = this.pathOf(name);
    const status = attempt(directory, problems, () => lstatSync(directory));
    const text = attempt(path, problems, () => readFileSync(path, "utf8"));
    if (status === undefined || text === undefined) return undefined;
    if (status === UNREADABLE || text === UNREADABLE) return this.byRecord.get(name);
    if (!status.isDirectory()) return undefined;
    const pod = podIn(text);
    return pod === undefined ? this.byRecord.get(name) : { ...pod, directory };
  }

  /** The FlexVolume leaves a directory that was not empty. */
  private removeLeft(name: string, directory: string, problems: Set<string>): void {
    const path = this.pathOf(name);
    if (attempt(path, problems, () => lstatSync(path)) !== undefined) return;
    try {
      rmdirSync(directory);
    } catch {
      // It is gone, or somebody else needs it.
    }
  }

  private pathOf(name: string): string {
    return join(this.root, "creds", name);
  }
}

function firstByUid(volumes: Iterable<SidecarVolume>): ReadonlyMap<string, SidecarVolume> {
  const first = new Map<string, SidecarVolume>();
  for (const volume of volumes) if (!first.has(volume.uid)) first.set(volume.uid, volume);
  return first;
}

/** `undefined` only if there is nothing at this path. */
function attempt<Value>(path: string, problems: Set<string>, read: () => Value): Value | typeof UNREADABLE | undefined {
  try {
    return read();
  } catch (failure) {
    if (failure instanceof Error && "code" in failure && failure.code === "ENOENT") return undefined;
    const reason = failure instanceof Error ? failure.message : failure;
    problems.add(`Cannot read ${quoted(path)}; sidecars that are known already are still served: ${reason}`);
    return UNREADABLE;
  }
}

/** `undefined` if it is not complete. */
function podIn(text: string): Pick<SidecarVolume, "uid" | "namespace" | "pod"> | undefined {
  try {
    const record: unknown = parseJson(text);
    const members = new Map(Object.entries(Object(record)).map(([key, value]) => [key.toLowerCase(), value]));
    const [uid, namespace, pod] = ["uid", "namespace", "workload"].map((key) => members.get(key));
    if (typeof uid !== "string" || typeof namespace !== "string" || typeof pod !== "string") return undefined;
    return { uid, namespace, pod };
  } catch {
    return undefined;
  }
}
