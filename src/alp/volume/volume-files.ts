/**
 * The files of the volumes on the host.
 *
 *   RUN/volumes/ID.json     record: which volume the kubelet has, for which pod. Outside of the pods' directories
 *   RUN/sidecars/UID/       directory of a pod; the node agent listens in it
 *   KUBELET/pods/UID/…/mount  the same directory, mounted read-only; the kubelet mounts it into containers
 */
import { chmodSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { effect } from "../../effect.ts";
import { GrpcError } from "../../grpc/status.ts";
import { replaceFile } from "../../linux/replace-file.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import type { VolumeRequest } from "./volume-request.ts";

export interface VolumePlaces {
  /** Of this product. */
  readonly runDirectory: string;
  /** Of the kubelet. */
  readonly kubelet: string;
}

/** How directories are mounted; each is idempotent. */
export interface Mounts {
  mountReadOnly(directory: string, target: string): void;
  isMountedReadOnly(directory: string, target: string): boolean;
  unmountAll(target: string): void;
}

/** Only root reaches the pods' directories this way. */
const OWNER_ONLY = 0o700;
/** The sidecar must find the socket. */
const DIRECTORY_MODE = 0o755;
const TARGET_MODE = 0o750;
const RECORD = ".json";

/** Every change is idempotent, and a change that does not return can be made again. */
export class VolumeFiles {
  private readonly records: string;
  private readonly directories: string;

  constructor(
    private readonly places: VolumePlaces,
    private readonly mounts: Mounts,
  ) {
    this.records = join(places.runDirectory, "volumes");
    this.directories = join(places.runDirectory, "sidecars");
  }

  directoryOf(uid: string): string {
    return join(this.directories, uid);
  }

  recordNames(): readonly string[] {
    return namesIn(this.records);
  }

  /** Removes what is not a record: half of one, or a file of somebody else. Throws an error if it cannot be read. */
  readRecord(name: string): VolumeRequest | undefined {
    const path = join(this.records, name);
    const record = recordIn(path);
    if (record === undefined) remove(path);
    return record;
  }

  writeRecord(record: VolumeRequest): void {
    replaceFile(this.recordPath(record.id), `${JSON.stringify(record)}\n`);
  }

  removeRecord(id: string): void {
    remove(this.recordPath(id));
  }

  /** UIDs of pods. */
  presentDirectories(): readonly string[] {
    return namesIn(this.directories);
  }

  makeDirectory(uid: string): void {
    const directory = this.directoryOf(uid);
    effect(`make "${directory}"`, () => {
      mkdirSync(this.directories, { recursive: true, mode: OWNER_ONLY });
      mkdirSync(directory, { recursive: true });
      // Whatever the umask is, and whoever made it.
      chmodSync(this.directories, OWNER_ONLY);
      chmodSync(directory, DIRECTORY_MODE);
    });
  }

  removeDirectory(uid: string): void {
    remove(this.directoryOf(uid));
  }

  /** It must be below the directory of the kubelet, and no part of the path between them may be a symbolic link. */
  requireTarget(target: string): string {
    const path = this.targetIn(target);
    if (path === undefined || lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === false) {
      throw refusedTarget(target, this.places.kubelet);
    }
    return path;
  }

  mount(uid: string, target: string): void {
    const path = this.requireTarget(target);
    const directory = realpathSync(this.directoryOf(uid));
    if (this.mounts.isMountedReadOnly(directory, path)) return;
    this.mounts.unmountAll(path);
    effect(`make "${path}"`, () => mkdirSync(path, { recursive: true, mode: TARGET_MODE }));
    this.mounts.mountReadOnly(directory, path);
  }

  /** Also removes the directory that it was mounted on. */
  unmount(target: string): void {
    const path = this.targetIn(target);
    if (path === undefined) {
      if (this.isGone(target)) return;
      throw refusedTarget(target, this.places.kubelet);
    }
    this.mounts.unmountAll(path);
    effect(`remove "${path}"`, () => removeEmpty(path));
  }

  /** Whether the kubelet has removed the directory that the volume was mounted in. */
  isGone(target: string): boolean {
    return lstatSync(dirname(target), { throwIfNoEntry: false }) === undefined;
  }

  /** Everything but mounts. */
  removeAll(): void {
    for (const directory of [this.directories, this.records]) remove(directory);
  }

  private recordPath(id: string): string {
    return join(this.records, `${id}${RECORD}`);
  }

  /** The same path without symbolic links; `undefined` if it leads elsewhere, or the directory above it does not exist. */
  private targetIn(target: string): string | undefined {
    const { kubelet } = this.places;
    try {
      const root = realpathSync(kubelet);
      const above = [kubelet, root].find((directory) => target.startsWith(`${directory}/`));
      if (above === undefined) return undefined;
      const path = `${root}${target.slice(above.length)}`;
      const names = path.split("/").slice(1);
      if (names.some((name) => name === "" || name === "." || name === "..")) return undefined;
      return realpathSync(dirname(path)) === dirname(path) ? path : undefined;
    } catch {
      return undefined;
    }
  }
}

function refusedTarget(target: string, kubelet: string): GrpcError {
  return new GrpcError(
    "invalid-argument",
    `target_path ${quoted(target)} is not in a directory below ${quoted(kubelet)}, or a part of it is a symbolic link; ` +
      "set kubeletVolumePluginPath of the Installation to the directory of the kubelet",
  );
}

function recordIn(path: string): VolumeRequest | undefined {
  const text = readFileSync(path, "utf8");
  try {
    const record: unknown = parseJson(text);
    return isRecord(record) && basename(path) === `${record.id}${RECORD}` ? record : undefined;
  } catch {
    return undefined;
  }
}

const TEXTS = ["id", "uid", "namespace", "pod", "target"];

function isRecord(value: unknown): value is VolumeRequest {
  const members = new Map(Object.entries(Object(value)));
  return TEXTS.every((name) => typeof members.get(name) === "string") && Number.isInteger(members.get("user"));
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch (failure) {
    if (codeOf(failure) === "ENOENT") return [];
    throw failure;
  }
}

function remove(path: string): void {
  effect(`remove "${path}"`, () => rmSync(path, { recursive: true, force: true }));
}

/** What others put into it stays: the kubelet reports it. */
function removeEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch (failure) {
    const code = codeOf(failure);
    if (code !== "ENOENT" && code !== "ENOTEMPTY") throw failure;
  }
}

function codeOf(failure: unknown): unknown {
  return failure instanceof Error && "code" in failure ? failure.code : undefined;
}
