/** When each pod may be written: a pod cannot cause many writes, and one that cannot be written does not delay the others. */
import { RateLimit } from "./rate-limit.ts";

const WRITES = { burst: 3, perSecond: 1 / 60 };
const FIRST_PAUSE_MILLISECONDS = 2_000;
const LONGEST_PAUSE_MILLISECONDS = 60_000;

interface PodPace {
  readonly writes: RateLimit;
  /** Of the last failures, one after the other. */
  pause: number;
  notBefore: number;
}

export class WritePace {
  private readonly pods = new Map<string, PodPace>();

  /** `elapsed`: monotonic milliseconds. */
  constructor(private readonly elapsed: () => number) {}

  /** Returns whether the pod may be written now; if so, this counts as once. */
  take(key: string): boolean {
    const pod = this.paceOf(key);
    return this.elapsed() >= pod.notBefore && pod.writes.take();
  }

  failed(key: string): void {
    const pod = this.paceOf(key);
    pod.pause = Math.min(Math.max(2 * pod.pause, FIRST_PAUSE_MILLISECONDS), LONGEST_PAUSE_MILLISECONDS);
    pod.notBefore = this.elapsed() + pod.pause;
  }

  succeeded(key: string): void {
    this.paceOf(key).pause = 0;
  }

  /** Forgets the pods that are gone. */
  keepOnly(keys: { has(key: string): boolean }): void {
    for (const key of this.pods.keys()) if (!keys.has(key)) this.pods.delete(key);
  }

  private paceOf(key: string): PodPace {
    const known = this.pods.get(key);
    if (known !== undefined) return known;
    const pod = { writes: new RateLimit(WRITES, this.elapsed), pause: 0, notBefore: Number.NEGATIVE_INFINITY };
    this.pods.set(key, pod);
    return pod;
  }
}
