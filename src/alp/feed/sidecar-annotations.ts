/**
 * Writes on the pods of this node which release of the sidecar reports, for people: what is enforced does not depend on it.
 * The annotation goes when the sidecar has been away for a while, so that a restart writes nothing. What a pod says can
 * cause only a few writes, and none of them delays those of other pods.
 */

import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import { LONGEST_MILLISECONDS } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";
import type { SidecarReleases } from "./sidecar-feed.ts";
import { WritePace } from "./write-pace.ts";

export interface AnnotationOptions {
  /** Of this node, by key. */
  readonly endpoints: () => ReadonlyMap<string, LocalEndpoint>;
  /** Of the sidecars that report now. */
  readonly releases: () => SidecarReleases;
  /** `undefined` removes it. A pod that is gone or was replaced meanwhile is not a failure. */
  readonly write: (key: string, endpoint: WorkloadEndpoint, release: string | undefined) => Promise<void>;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly report: (message: string) => void;
}

interface Written {
  /** As the datastore had it then. */
  readonly endpoint: WorkloadEndpoint;
  readonly release: string | undefined;
}

const AWAY_MILLISECONDS = 10_000;
const PACE_MILLISECONDS = 1_000;

export class SidecarAnnotations {
  /** When it was first noticed that no sidecar reports, by key. */
  private readonly awaySince = new Map<string, number>();
  private readonly written = new Map<string, Written>();
  private readonly pace: WritePace;
  private readonly wakeup = new Wakeup();

  constructor(private readonly options: AnnotationOptions) {
    this.pace = new WritePace(options.elapsed);
  }

  /** Sidecars or endpoints have changed. */
  changed(): void {
    this.wakeup.notify();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.wakeup.reset();
      const isDone = await this.writeDue(signal);
      await this.options.wait(PACE_MILLISECONDS, signal);
      if (this.wakeup.isNotified || signal.aborted) continue;
      const limit = isDone && this.awaySince.size === 0 ? LONGEST_MILLISECONDS : PACE_MILLISECONDS;
      await this.options.wait(limit, AbortSignal.any([signal, this.wakeup.signal]));
    }
  }

  /** Returns whether all that is due was written. */
  private async writeDue(signal: AbortSignal): Promise<boolean> {
    let isDone = true;
    for (const { key, endpoint, release } of this.due()) {
      if (signal.aborted) return true;
      if (!this.pace.take(key) || !(await this.write(key, endpoint, release))) isDone = false;
    }
    return isDone;
  }

  private async write(key: string, endpoint: WorkloadEndpoint, release: string | undefined): Promise<boolean> {
    try {
      await this.options.write(key, endpoint, release);
    } catch (failure) {
      const reason = failure instanceof Error ? failure.message : failure;
      this.options.report(`Cannot record the sidecar of pod "${endpoint.spec.pod}": ${reason}`);
      this.pace.failed(key);
      return false;
    }
    this.pace.succeeded(key);
    this.written.set(key, { endpoint, release });
    return true;
  }

  private due(): readonly {
    readonly key: string;
    readonly endpoint: WorkloadEndpoint;
    readonly release: string | undefined;
  }[] {
    const endpoints = this.options.endpoints();
    const releases = this.options.releases();
    for (const key of this.written.keys()) if (!endpoints.has(key)) this.written.delete(key);
    for (const key of this.awaySince.keys()) if (!endpoints.has(key)) this.awaySince.delete(key);
    this.pace.keepOnly(endpoints);
    return Array.from(endpoints).flatMap(([key, { endpoint }]) => {
      const release = releases.get(key);
      const isRight = this.recordedOn(key, endpoint) === release;
      if (isRight || release !== undefined) this.awaySince.delete(key);
      if (isRight || (release === undefined && !this.isAwayForLong(key))) return [];
      return [{ key, endpoint, release }];
    });
  }

  private recordedOn(key: string, endpoint: WorkloadEndpoint): string | undefined {
    const written = this.written.get(key);
    // Until the datastore says it.
    return written?.endpoint === endpoint ? written.release : endpoint.metadata.annotations?.[SIDECAR_ANNOTATION];
  }

  private isAwayForLong(key: string): boolean {
    const now = this.options.elapsed();
    const since = this.awaySince.get(key) ?? now;
    this.awaySince.set(key, since);
    return now - since >= AWAY_MILLISECONDS;
  }
}
