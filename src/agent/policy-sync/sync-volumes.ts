/**
 * The pods of this node that a release before v3.29 has given a directory for its sidecar's socket, by a FlexVolume or by its
 * CSI driver. Both leave the same on the host, and remove it with the pod:
 *
 *   ROOT/creds/ID.json   which pod it is: {"UID": …, "Workload": …, "Namespace": …, "ServiceAccount": …}
 *   ROOT/mount/ID/       directory, mounted in the pod at /var/run/felix/nodeagent; the agent listens at `socket` in it
 *
 * Only root writes to ROOT and to its two directories; a pod may write to its own below `mount`.
 */
import { lstatSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { parseJson } from "../../parse-json.ts";
import type { SidecarVolume, SidecarVolumes } from "../sidecars/sidecar-volumes.ts";

const RECORD = ".json";

export class SyncVolumes implements SidecarVolumes {
  readonly recovered: ReadonlySet<string>;
  private known: ReadonlyMap<string, SidecarVolume> = new Map();
  private readonly listeners = new Set<() => void>();

  /** Those that are there now count as recovered: their pods ran before this agent. */
  constructor(private readonly root: string) {
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
    const names = namesIn(join(this.root, "creds"));
    if (names !== undefined || this.known.size > 0) this.update(names ?? []);
    return names !== undefined;
  }

  private update(names: readonly string[]): void {
    const before = this.known;
    const now = new Map<string, SidecarVolume>();
    for (const name of names) {
      const volume = this.volumeOf(name);
      if (volume !== undefined && !now.has(volume.uid)) now.set(volume.uid, volume);
    }
    if (Bun.deepEquals([...before.values()], [...now.values()])) return;
    this.known = now;
    for (const listener of this.listeners) listener();
    // The FlexVolume leaves a directory that was not empty.
    for (const { uid, directory } of before.values()) if (!now.has(uid)) removeEmpty(directory);
  }

  private volumeOf(name: string): SidecarVolume | undefined {
    if (!name.endsWith(RECORD) || name.startsWith(".")) return undefined;
    const directory = join(this.root, "mount", name.slice(0, -RECORD.length));
    if (lstatSync(directory, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined;
    const pod = podIn(join(this.root, "creds", name));
    return pod === undefined ? undefined : { ...pod, directory };
  }
}

/** `undefined` if it is gone, or not complete. */
function podIn(path: string): Pick<SidecarVolume, "uid" | "namespace" | "pod"> | undefined {
  try {
    const record: unknown = parseJson(readFileSync(path, "utf8"));
    const members = new Map(Object.entries(Object(record)).map(([key, value]) => [key.toLowerCase(), value]));
    const [uid, namespace, pod] = ["uid", "namespace", "workload"].map((key) => members.get(key));
    if (typeof uid !== "string" || typeof namespace !== "string" || typeof pod !== "string") return undefined;
    return { uid, namespace, pod };
  } catch {
    return undefined;
  }
}

/** Sorted, so that of two directories of one pod always the same is served; `undefined` if there is no such directory. */
function namesIn(directory: string): readonly string[] | undefined {
  try {
    return readdirSync(directory).sort();
  } catch {
    return undefined;
  }
}

function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // It is gone, or somebody else needs it.
  }
}
