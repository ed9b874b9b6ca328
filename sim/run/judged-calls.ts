/**
 * CHECK and GC, whose answers nobody acts on: they must succeed while nothing disturbs their node. A GC that fails is tried
 * again.
 */
import type { WorldAttachment } from "../judge/invariant.ts";
import { PLUGIN_DIED, type SimulatedRuntime } from "../node/simulated-runtime.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

export interface JudgedCallsMeans {
  readonly node: string;
  readonly scheduler: Scheduler;
  readonly runtime: SimulatedRuntime;
  /** The machine runs. */
  readonly isOn: () => boolean;
  /** When another program last changed what the product has set in the kernel. */
  readonly tamperedAt: () => number | undefined;
  /** No fault that concerns the node was active since then. */
  readonly isQuietSince: (time: number) => boolean;
  /** The user still wants it to run. */
  readonly isWanted: (pod: WorldAttachment["pod"]) => boolean;
  /** A user has changed what the plugin recorded in its annotations: CHECK rightly says so. */
  readonly isAnnotated: (pod: WorldAttachment["pod"]) => boolean;
  /** A call failed that had no reason to. */
  readonly onFailure: (what: string) => void;
}

const GC_RETRY_MILLISECONDS = 10_000;
/** The agent needs no longer to set again what others have changed. */
const REPAIR_MILLISECONDS = 180_000;
/** Of a pod: the agent does not set it again, since the kernel finds the pod without it, and CHECK rightly says so. */
const LACKS_NEIGHBOURS = /^[^:]*:( host interface "[^"]*" lacks neighbour entry [^;]*;?)+$/;

export class JudgedCalls {
  constructor(private readonly means: JudgedCallsMeans) {}

  async check(containerId: string): Promise<void> {
    const { node, scheduler, runtime, isOn, isWanted, isAnnotated, onFailure } = this.means;
    const begun = scheduler.now;
    const before = runtime.attachments.get(containerId);
    const reason = await runtime.check(containerId);
    // A call that is armed to die does so whenever it comes.
    if (reason === undefined || reason === PLUGIN_DIED || before?.state !== "attached") return;
    const isUntouched = isOn() && runtime.attachments.get(containerId) === before && isWanted(before.pod);
    const isExplained =
      isAnnotated(before.pod) || (this.means.tamperedAt() !== undefined && LACKS_NEIGHBOURS.test(reason));
    if (isUntouched && this.isUndisturbedSince(begun) && !isExplained)
      onFailure(`${node}: CHECK of ${containerId} failed: ${reason}`);
  }

  async collectGarbage(): Promise<void> {
    const { node, scheduler, runtime, isOn, onFailure } = this.means;
    while (isOn()) {
      const begun = scheduler.now;
      const reason = await runtime.gc();
      if (reason === undefined) return;
      if (isOn() && reason !== PLUGIN_DIED && this.isUndisturbedSince(begun)) {
        onFailure(`${node}: GC failed: ${reason}`);
      }
      await scheduler.wait(GC_RETRY_MILLISECONDS);
    }
  }

  private isUndisturbedSince(time: number): boolean {
    const tamperedAt = this.means.tamperedAt() ?? Number.NEGATIVE_INFINITY;
    return this.means.isQuietSince(time) && time - tamperedAt >= REPAIR_MILLISECONDS;
  }
}
