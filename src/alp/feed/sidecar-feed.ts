/**
 * Feeds the sidecars of this node's pods: each one learns the policies of its own pod, and every change of them.
 *
 *   volumes ──> one socket in the directory of each pod ──> one connection of its sidecar
 *   compiler ─> state of the pod ──> what changed since the last update ──> one update at a time
 *   the first `applied` ──> the sidecar reports in, and the kernel lets connections through that it decides about
 *   connection lost ──────> it does not, at once
 *
 * One pod is fed at a time, and other work of the agent comes between two of them. Nothing that a sidecar does can block
 * the agent or grow its memory: see SidecarConnection, SyncConnection and PodSocket for the limits.
 */

import type { LocalEndpoint } from "../../policy/compile/workload-endpoints.ts";
import { LONGEST_MILLISECONDS, nextTurn } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";
import type { SidecarState } from "../state/sidecar-states.ts";
import { endpointsOfPods, type PodEndpoints } from "./endpoints-of-pods.ts";
import { PodSocket } from "./pod-socket.ts";
import { type Rate, RateLimit } from "./rate-limit.ts";
import type { FedConnection, Refusal } from "./sidecar-connection.ts";
import type { SidecarVolume, SidecarVolumes } from "./sidecar-volumes.ts";

export interface FeedOptions {
  readonly volumes: SidecarVolumes;
  /** The release of this agent. */
  readonly version: string;
  /** Of this node, by key. */
  readonly endpoints: () => ReadonlyMap<string, LocalEndpoint>;
  readonly states: {
    stateOf(endpoint: string): SidecarState | undefined;
    forget(endpoint: string): void;
  };
  /** The UID of an endpoint is that of its pod. */
  readonly hasPodUids: boolean;
  /** How often whole states are sent, to all pods together. */
  readonly wholeStates?: Rate;
  /** Called with the endpoints whose sidecars decide about requests, whenever they change. */
  readonly reporting: (sidecars: SidecarReleases) => void;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly report: (message: string) => void;
}

/** The release of each sidecar that decides, by the key of its endpoint. */
export type SidecarReleases = ReadonlyMap<string, string>;

export interface FeedFacts {
  readonly reporting: number;
  readonly updates: number;
  readonly refused: ReadonlyMap<Refusal, number>;
}

interface FedPod {
  readonly volume: SidecarVolume;
  readonly socket: PodSocket;
  /** A sidecar that connects again and again gets its whole state only so often. */
  readonly wholeStates: RateLimit;
  connection: FedConnection | undefined;
  /** The key of its endpoint, when it was last fed. */
  endpoint: string | undefined;
}

const TICK_MILLISECONDS = 250;
const WHOLE_STATES = { burst: 5, perSecond: 1 };
/** More at once than a node has pods: all connect when an agent starts. */
const WHOLE_STATES_OF_NODE = { burst: 500, perSecond: 50 };

export class SidecarFeed {
  private readonly pods = new Map<string, FedPod>();
  private readonly pending = new Set<FedPod>();
  /** Their whole state may be sent later. */
  private readonly postponed = new Set<FedPod>();
  private podEndpoints: PodEndpoints | undefined;
  private reported: SidecarReleases = new Map();
  private isFeeding = false;
  private isEnding = false;
  private updates = 0;
  private readonly refused = new Map<Refusal, number>();
  private readonly wakeup = new Wakeup();
  private readonly failure = Promise.withResolvers<never>();

  private readonly wholeStates: RateLimit;

  constructor(private readonly options: FeedOptions) {
    this.wholeStates = new RateLimit(options.wholeStates ?? WHOLE_STATES_OF_NODE, options.elapsed);
  }

  get facts(): FeedFacts {
    return { reporting: this.reported.size, updates: this.updates, refused: this.refused };
  }

  /** The kernel has what the compiler knows now. */
  policyChanged(): void {
    this.podEndpoints = undefined;
    for (const pod of this.pods.values()) this.schedule(pod);
  }

  /** Resolves when the signal is aborted: the sidecars go on with what they know. Rejects if it cannot go on. */
  async run(signal: AbortSignal): Promise<void> {
    const unfollow = this.options.volumes.follow(() => this.attempt(() => this.followVolumes()));
    try {
      this.followVolumes();
      await Promise.race([this.tick(signal), this.failure.promise]);
    } finally {
      this.isEnding = true;
      unfollow();
      for (const pod of this.pods.values()) this.remove(pod);
    }
  }

  private async tick(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      this.wakeup.reset();
      await this.options.wait(
        this.pods.size === 0 ? LONGEST_MILLISECONDS : TICK_MILLISECONDS,
        AbortSignal.any([signal, this.wakeup.signal]),
      );
      if (signal.aborted) return;
      for (const pod of this.pods.values()) {
        pod.socket.checkTime();
        this.listen(pod);
      }
      const due = [...this.postponed];
      // Before they are fed: some are postponed again.
      this.postponed.clear();
      for (const pod of due) this.schedule(pod);
    }
  }

  private followVolumes(): void {
    const { all } = this.options.volumes;
    for (const [uid, pod] of this.pods) if (!Bun.deepEquals(all.get(uid), pod.volume)) this.remove(pod);
    for (const volume of all.values()) if (!this.pods.has(volume.uid)) this.add(volume);
    this.podEndpoints = undefined;
    this.wakeup.notify();
  }

  private add(volume: SidecarVolume): void {
    const { version, elapsed } = this.options;
    const socket = new PodSocket(volume, {
      ...{ version, elapsed },
      refused: (reason) => this.refused.set(reason, (this.refused.get(reason) ?? 0) + 1),
      greeted: (connection) => this.attempt(() => this.greeted(pod, connection)),
      applied: () => this.attempt(() => this.applied(pod)),
      closed: (connection) => this.attempt(() => this.closed(pod, connection)),
      report: (problem) => this.report(volume, problem),
    });
    const wholeStates = new RateLimit(WHOLE_STATES, elapsed);
    const pod: FedPod = { volume, socket, wholeStates, connection: undefined, endpoint: undefined };
    this.pods.set(volume.uid, pod);
    this.listen(pod);
  }

  private remove(pod: FedPod): void {
    this.pods.delete(pod.volume.uid);
    this.pending.delete(pod);
    this.postponed.delete(pod);
    pod.socket.close();
    this.closed(pod, pod.connection);
    this.moveTo(pod, undefined);
  }

  private listen({ volume, socket }: FedPod): void {
    try {
      socket.listen();
    } catch (failure) {
      this.report(volume, failure instanceof Error ? failure.message : String(failure));
    }
  }

  private report({ namespace, pod }: SidecarVolume, problem: string): void {
    this.options.report(`Cannot serve the sidecar of pod "${namespace}/${pod}": ${problem}`);
  }

  private greeted(pod: FedPod, connection: FedConnection): void {
    const before = pod.connection;
    pod.connection = connection;
    before?.close();
    this.reportIfChanged();
    this.schedule(pod);
  }

  private applied(pod: FedPod): void {
    this.reportIfChanged();
    // What changed meanwhile.
    this.schedule(pod);
  }

  private closed(pod: FedPod, connection: FedConnection | undefined): void {
    if (connection === undefined || pod.connection !== connection) return;
    pod.connection = undefined;
    if (pod.endpoint !== undefined) this.options.states.forget(pod.endpoint);
    this.reportIfChanged();
  }

  private schedule(pod: FedPod): void {
    this.pending.add(pod);
    if (!this.isFeeding) void this.feedPending();
  }

  private async feedPending(): Promise<void> {
    this.isFeeding = true;
    for (const pod of this.pending) {
      this.pending.delete(pod);
      this.attempt(() => this.feed(pod));
      await nextTurn();
    }
    this.isFeeding = false;
  }

  private feed(pod: FedPod): void {
    const { connection } = pod;
    this.moveTo(pod, this.endpointOf(pod));
    if (connection === undefined || !connection.isIdle || pod.endpoint === undefined) return;
    const state = this.options.states.stateOf(pod.endpoint);
    if (state === undefined) return;
    if (connection.isNew && !this.mayHaveWholeState(pod)) this.postponed.add(pod);
    else if (connection.update(state)) this.updates += 1;
  }

  private mayHaveWholeState({ wholeStates }: FedPod): boolean {
    // A pod that has none left does not take from the others.
    return wholeStates.hasLeft && this.wholeStates.take() && wholeStates.take();
  }

  private endpointOf({ volume }: FedPod): string | undefined {
    const { volumes, endpoints, hasPodUids } = this.options;
    this.podEndpoints ??= endpointsOfPods(volumes.all.values(), endpoints(), { hasPodUids });
    return this.podEndpoints.get(volume.uid);
  }

  private moveTo(pod: FedPod, endpoint: string | undefined): void {
    if (pod.endpoint === endpoint) return;
    if (pod.endpoint !== undefined) this.options.states.forget(pod.endpoint);
    pod.endpoint = endpoint;
    this.reportIfChanged();
  }

  private reportIfChanged(): void {
    // The kernel keeps what it has, for the next agent.
    if (this.isEnding) return;
    const now = new Map<string, string>();
    for (const { connection, endpoint } of this.pods.values()) {
      if (endpoint === undefined || connection?.reportsIn !== true) continue;
      now.set(endpoint, connection.release ?? "");
    }
    if (Bun.deepEquals(now, this.reported)) return;
    this.reported = now;
    this.options.reporting(now);
  }

  /** What fails in an event of a socket ends `run`. */
  private attempt(work: () => void): void {
    try {
      if (!this.isEnding) work();
    } catch (failure) {
      this.failure.reject(failure);
    }
  }
}
