/**
 * The volumes that the kubelet has of this node's agent.
 *
 *   publish     record -> directory -> mounted -> announced
 *   unpublish   withdrawn -> unmounted -> directory -> record
 *
 * The record comes first and goes last: an agent that starts again finds every volume that may have left something, and
 * the kubelet repeats what did not succeed. Calls are synchronous, so that they never overlap.
 */
import { GrpcError } from "../../grpc/status.ts";
import { quoted } from "../../quote.ts";
import type { SidecarVolume, SidecarVolumes } from "../feed/sidecar-volumes.ts";
import type { VolumeFiles } from "./volume-files.ts";
import type { VolumeRequest } from "./volume-request.ts";

export class PublishedVolumes implements SidecarVolumes {
  readonly recovered = new Set<string>();
  /** By the UID of the pod. */
  private readonly announced = new Map<string, SidecarVolume>();
  private readonly records = new Map<string, VolumeRequest>();
  private readonly listeners = new Set<() => void>();
  private isComplete = false;

  constructor(private readonly files: VolumeFiles) {}

  get all(): ReadonlyMap<string, SidecarVolume> {
    return this.announced;
  }

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Whether nothing is left to recover. */
  get isRecovered(): boolean {
    return this.isComplete;
  }

  /**
   * Finds the volumes of the previous agent, and removes what is left of pods that are gone. A volume that fails does not keep
   * others from being found. Returns the failures: call it again later then.
   */
  recover(): readonly unknown[] {
    const failures: unknown[] = [];
    const attempt = (step: () => void) => {
      try {
        step();
      } catch (failure) {
        failures.push(failure);
      }
    };
    attempt(() => this.readRecords(attempt));
    const areRecordsKnown = failures.length === 0;
    for (const record of [...this.records.values()]) attempt(() => this.recoverVolume(record));
    // A directory without a record may be of one that could not be read.
    if (areRecordsKnown) attempt(() => this.removeUnknownDirectories(attempt));
    this.notify();
    this.isComplete = failures.length === 0;
    return failures;
  }

  publish(request: VolumeRequest): void {
    this.refuseOtherUser(request);
    this.files.requireTarget(request.target);
    this.files.writeRecord(request);
    this.records.set(request.id, request);
    this.files.makeDirectory(request.uid);
    this.files.mount(request.uid, request.target);
    this.announce(request);
    this.notify();
  }

  /** `target` may be another one than that of the record. */
  unpublish({ id, target }: Pick<VolumeRequest, "id" | "target">): void {
    const record = this.records.get(id);
    const isLast = record !== undefined && this.recordsOf(record.uid).length === 1;
    if (isLast) this.withdraw(record.uid);
    this.files.unmount(target);
    if (record === undefined) return;
    if (record.target !== target) this.files.unmount(record.target);
    if (isLast) this.files.removeDirectory(record.uid);
    this.files.removeRecord(id);
    this.records.delete(id);
  }

  /** Returns the pods that still had a volume. */
  removeAll(): readonly string[] {
    const [failure] = this.recover();
    const pods = Array.from(this.announced.values(), ({ namespace, pod }) => `${namespace}/${pod}`);
    for (const { id, target } of [...this.records.values()]) this.unpublish({ id, target });
    if (failure !== undefined) throw failure;
    this.files.removeAll();
    return pods;
  }

  private readRecords(attempt: (step: () => void) => void): void {
    for (const name of this.files.recordNames()) {
      attempt(() => {
        const record = this.files.readRecord(name);
        if (record === undefined) return;
        if (!this.records.has(record.id)) this.recovered.add(record.uid);
        this.records.set(record.id, record);
      });
    }
  }

  private recoverVolume(record: VolumeRequest): void {
    if (this.files.isGone(record.target)) this.unpublish(record);
    else {
      this.files.makeDirectory(record.uid);
      this.announce(record);
    }
  }

  private removeUnknownDirectories(attempt: (step: () => void) => void): void {
    const known = new Set(Array.from(this.records.values(), ({ uid }) => uid));
    for (const uid of this.files.presentDirectories()) {
      if (!known.has(uid)) attempt(() => this.files.removeDirectory(uid));
    }
  }

  /** Volumes of one pod share a directory, and the socket in it. */
  private refuseOtherUser({ id, uid, user }: VolumeRequest): void {
    const other = this.recordsOf(uid).find((record) => record.id !== id && record.user !== user);
    if (other === undefined) return;
    throw new GrpcError(
      "failed-precondition",
      `volumeAttributes.user ${quoted(String(user))} differs from ${quoted(String(other.user))} of another volume of the pod; ` +
        "use one volume, with the user of the sidecar",
    );
  }

  private recordsOf(uid: string): readonly VolumeRequest[] {
    return [...this.records.values()].filter((record) => record.uid === uid);
  }

  private announce({ uid, namespace, pod, user }: VolumeRequest): void {
    this.announced.set(uid, { uid, namespace, pod, user, directory: this.files.directoryOf(uid) });
  }

  /** Before its directory is removed. */
  private withdraw(uid: string): void {
    if (this.announced.delete(uid)) this.notify();
  }

  private notify(): void {
    for (const listener of this.listeners) listener();
  }
}
