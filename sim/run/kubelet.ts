/**
 * What a kubelet does with the pods of its node: it hears of them some time after the API has them, starts a sandbox for
 * each, tries again with another sandbox if that fails, reports the addresses, ends the sandbox of a pod that is deleted,
 * and only then lets the API forget the pod.
 */
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

export interface KubeletPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** The user has asked for its end. */
  readonly isEnding: boolean;
  /** Until then its containers run on, in virtual milliseconds; absent: they end at once. */
  readonly endsAt?: number;
}

export type AddResult =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/** The calls of the network plugin. None of them rejects. */
export interface PodRuntime {
  add(pod: KubeletPod, containerId: string): Promise<AddResult>;
  /** `false`: to be tried again. */
  del(containerId: string): Promise<boolean>;
  /** Of a container whose DEL has succeeded. */
  delAgain(pod: KubeletPod, containerId: string): Promise<boolean>;
}

/** The API, as the kubelet reaches it. */
export interface PodApi {
  /** `undefined` if it cannot be reached. */
  podsOf(node: string): readonly KubeletPod[] | undefined;
  /** `false` if it cannot be reached. */
  report(pod: KubeletPod, addresses: readonly string[]): boolean;
  /** The sandbox has ended. `false` if it cannot be reached. */
  forget(pod: KubeletPod): boolean;
}

export interface KubeletMeans {
  readonly node: string;
  /** Identifiers of containers are never used again, not even by another machine of the same name. */
  readonly containerPrefix: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly runtime: PodRuntime;
  readonly api: PodApi;
}

interface Sandbox {
  readonly containerId: string;
  readonly addresses: readonly string[];
  isReported: boolean;
  /** Its DEL is called once more than needed. */
  isDeletedTwice?: boolean;
}

const FIRST_RETRY = 1_000;
const LONGEST_RETRY = 30_000;

export class Kubelet {
  private known = new Map<string, KubeletPod>();
  private readonly sandboxes = new Map<string, Sandbox>();
  private readonly workers = new Map<string, { wake: () => void }>();
  /** Static pods that the API does not have any more. */
  private readonly withoutMirror = new Map<string, KubeletPod>();
  private containers = 0;
  private isOn = true;
  private isStopped = false;
  /** Workers of a former life end at their next step. */
  private life = 0;

  constructor(private readonly means: KubeletMeans) {}

  /** Something about the pods of this node has changed. */
  hear(): void {
    const { scheduler, random } = this.means;
    scheduler.after(10 + random.below(300), () => this.sync());
  }

  sandboxOf(uid: string): string | undefined {
    return this.sandboxes.get(uid)?.containerId;
  }

  /** Whether every pod runs, and nothing is left to end. */
  get isSettled(): boolean {
    const wanted = [...this.known.values()];
    return (
      wanted.every(({ uid, isEnding }) => !isEnding && this.sandboxes.get(uid)?.isReported === true) &&
      [...this.sandboxes.keys()].every((uid) => this.known.has(uid))
    );
  }

  /** The sandbox is gone, without a call of the plugin; the next one is started at once. */
  loseSandbox(uid: string): void {
    this.sandboxes.delete(uid);
    this.workers.get(uid)?.wake();
  }

  /** It runs on without the API, as a static pod does: until `endStaticPods()`, or a restart of the machine. */
  loseMirror(uid: string): void {
    const pod = this.known.get(uid);
    if (pod !== undefined && !pod.isEnding && this.sandboxes.has(uid)) this.withoutMirror.set(uid, pod);
  }

  /** Somebody has removed their manifests. */
  endStaticPods(): void {
    this.withoutMirror.clear();
    this.sync();
  }

  /** When the sandbox ends, its DEL is called twice. */
  repeatDel(uid: string): void {
    const sandbox = this.sandboxes.get(uid);
    if (sandbox !== undefined) sandbox.isDeletedTwice = true;
  }

  /** It hears nothing of its pods any more, and what runs goes on. */
  stop(): void {
    this.isStopped = true;
  }

  goOn(): void {
    this.isStopped = false;
    this.hear();
  }

  /** The machine is switched off: everything stops half way. */
  switchOff(): void {
    this.isOn = false;
    this.life += 1;
    for (const { wake } of this.workers.values()) wake();
    this.workers.clear();
  }

  /** All sandboxes of before have ended; the runtime knows of them still, and their DEL follows. */
  switchOn(): void {
    this.isOn = true;
    const former = [...this.sandboxes.values()];
    this.sandboxes.clear();
    this.known.clear();
    this.withoutMirror.clear();
    for (const { containerId } of former) void this.endContainer(containerId, this.life);
    this.hear();
  }

  private sync(): void {
    if (!this.isOn || this.isStopped) return;
    const { api, node, scheduler } = this.means;
    const pods = api.podsOf(node);
    if (pods === undefined) {
      scheduler.after(1_000, () => this.sync());
      return;
    }
    this.known = new Map([...this.withoutMirror.values(), ...pods].map((pod) => [pod.uid, pod]));
    for (const pod of pods) {
      if (!this.workers.has(pod.uid)) {
        this.workers.set(pod.uid, { wake: () => {} });
        void this.work(pod, this.life);
      }
    }
    for (const { wake } of this.workers.values()) wake();
  }

  private async work(pod: KubeletPod, life: number): Promise<void> {
    const { uid } = pod;
    let retry = FIRST_RETRY;
    while (life === this.life) {
      const current = this.known.get(uid);
      const sandbox = this.sandboxes.get(uid);
      const isWanted = current !== undefined && !current.isEnding;
      if (isWanted && sandbox === undefined) {
        const hasStarted = await this.start(pod, life);
        if (hasStarted) retry = FIRST_RETRY;
        else {
          await this.pause(uid, retry);
          retry = Math.min(2 * retry, LONGEST_RETRY);
        }
      } else if (!isWanted && sandbox !== undefined && remainingOf(current, this.means.scheduler.now) > 0) {
        await this.pause(uid, remainingOf(current, this.means.scheduler.now));
      } else if (!isWanted && sandbox !== undefined) {
        await this.endContainer(sandbox.containerId, life);
        if (life === this.life && this.sandboxes.get(uid) === sandbox) this.sandboxes.delete(uid);
        if (sandbox.isDeletedTwice) void this.means.runtime.delAgain(pod, sandbox.containerId);
      } else if (!isWanted) {
        if (current !== undefined && !this.means.api.forget(current)) await this.pause(uid, FIRST_RETRY);
        else break;
      } else if (sandbox?.isReported === false) {
        sandbox.isReported = this.means.api.report(pod, sandbox.addresses);
        if (!sandbox.isReported) await this.pause(uid, FIRST_RETRY);
      } else await this.news(uid);
    }
    if (life !== this.life) return;
    this.known.delete(uid);
    this.workers.delete(uid);
  }

  private async start(pod: KubeletPod, life: number): Promise<boolean> {
    this.containers += 1;
    const containerId = `${this.means.containerPrefix}-${this.containers}`;
    const outcome = await this.means.runtime.add(pod, containerId);
    if (life !== this.life) return false;
    if (outcome.ok) {
      this.sandboxes.set(pod.uid, { containerId, addresses: outcome.addresses, isReported: false });
      return true;
    }
    // As containerd does after an ADD that failed; the next sandbox does not wait until it succeeds.
    void this.endContainer(containerId, life);
    return false;
  }

  /** Until DEL succeeds. */
  private async endContainer(containerId: string, life: number): Promise<void> {
    let retry = FIRST_RETRY;
    while (life === this.life && !(await this.means.runtime.del(containerId))) {
      await this.means.scheduler.wait(retry);
      retry = Math.min(2 * retry, LONGEST_RETRY);
    }
  }

  private news(uid: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const worker = this.workers.get(uid);
    if (worker !== undefined) worker.wake = resolve;
    return promise;
  }

  private pause(uid: string, milliseconds: number): Promise<void> {
    return Promise.race([this.news(uid), this.means.scheduler.wait(milliseconds)]);
  }
}

/** Of its grace period. A pod that the API has forgotten has none. */
function remainingOf(pod: KubeletPod | undefined, now: number): number {
  return Math.max(0, (pod?.endsAt ?? now) - now);
}
