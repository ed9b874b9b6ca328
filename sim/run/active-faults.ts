/** The faults that are in progress. Those of one kind at one place may overlap: only the end of the last one ends them. */
import type { Scheduler } from "../schedule/scheduler.ts";
import type { FaultKind } from "../script/operation.ts";
import type { Coverage } from "./coverage.ts";

interface ActiveFault {
  readonly place: string | undefined;
  readonly name: string;
  readonly heal: () => void;
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

  constructor(
    private readonly scheduler: Scheduler,
    private readonly coverage: Coverage,
  ) {}

  /** It ends after its time, or when all are healed. */
  begin({ kind, place, milliseconds, end, isFelt }: BegunFault): void {
    const over = isFelt ? this.coverage.beginFault(kind, place) : () => {};
    const name = `${kind} ${place ?? ""}`;
    const heal = () => {
      if (!this.all.delete(fault)) return;
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

  healAll(): void {
    for (const { heal } of [...this.all]) heal();
  }
}
