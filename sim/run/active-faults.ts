/** The faults that are in progress. Those of one kind at one place may overlap: only the end of the last one ends them. */
import type { Scheduler } from "../schedule/scheduler.ts";
import type { FaultKind } from "../script/operation.ts";
import type { Coverage } from "./coverage.ts";

interface ActiveFault {
  readonly place: string | undefined;
  readonly name: string;
  readonly heal: () => void;
}

/** Of virtual time, in milliseconds. */
export interface Interval {
  readonly since: number;
  readonly until: number;
}

interface Disturbance {
  readonly place: string | undefined;
  readonly since: number;
  /** Infinite while it is in progress. */
  until: number;
}

export interface BegunFault {
  readonly kind: FaultKind;
  /** A node, or a copy of the controllers; absent if it touches everybody. */
  readonly place?: string;
  readonly milliseconds: number;
  /** Absent if it ends by itself. */
  readonly end?: () => void;
  /** Whether it touches somebody from now on; else it is counted when it does. */
  readonly isFelt: boolean;
}

export class ActiveFaults {
  private readonly all = new Set<ActiveFault>();
  /** When the last one ended, by its place. */
  private readonly endedAt = new Map<string | undefined, number>();
  /** All of them, in the order of their beginnings. */
  private readonly disturbances: Disturbance[] = [];

  constructor(
    private readonly scheduler: Scheduler,
    private readonly coverage: Coverage,
  ) {}

  /** It ends after its time, or when all are healed. */
  begin({ kind, place, milliseconds, end, isFelt }: BegunFault): void {
    const over = isFelt ? this.coverage.beginFault(kind, place) : () => {};
    const name = `${kind} ${place ?? ""}`;
    const disturbance = { place, since: this.scheduler.now, until: Number.POSITIVE_INFINITY };
    this.disturbances.push(disturbance);
    const heal = () => {
      if (!this.all.delete(fault)) return;
      disturbance.until = this.scheduler.now;
      this.endedAt.set(place, this.scheduler.now);
      over();
      if (![...this.all].some((other) => other.name === name)) end?.();
    };
    const fault = { place, name, heal };
    this.all.add(fault);
    this.scheduler.after(milliseconds, heal);
  }

  /** None that touches this place, or everybody, was in progress since then. */
  isQuietSince(time: number, place: string): boolean {
    const concerns = [place, undefined];
    if ([...this.all].some((fault) => concerns.includes(fault.place))) return false;
    return concerns.every((each) => (this.endedAt.get(each) ?? Number.NEGATIVE_INFINITY) < time);
  }

  /** When none touched this place, or everybody. The last interval ends now if none does. */
  quietTimes(place: string): readonly Interval[] {
    const quiet: Interval[] = [];
    let since = Number.NEGATIVE_INFINITY;
    for (const each of this.disturbances) {
      if (each.place !== undefined && each.place !== place) continue;
      if (each.since > since) quiet.push({ since, until: each.since });
      since = Math.max(since, each.until);
    }
    return since < this.scheduler.now ? [...quiet, { since, until: this.scheduler.now }] : quiet;
  }

  healAll(): void {
    for (const { heal } of [...this.all]) heal();
  }
}
