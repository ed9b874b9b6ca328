/** How many requests a server was asked for, by whom and for what: at rest there are hardly any. */
import type { SimulatedProcess } from "../schedule/process.ts";

export interface Requests {
  readonly reads: number;
  readonly writes: number;
}

interface Sender {
  readonly process: SimulatedProcess;
  readonly place: string;
}

interface Request {
  readonly kind: "read" | "write";
  /** The beginning of a watch, a sign of life, an election; absent: none of them. */
  readonly purpose?: "watch" | "probe" | "lease" | undefined;
  /** Its objects. */
  readonly what?: string;
}

export class Traffic {
  private readonly byPlace = new Map<string, { reads: number; writes: number }>();
  private readonly byObject = new Map<string, number>();

  count({ process, place }: Sender, { kind, purpose, what = "" }: Request): void {
    const requests = this.byPlace.get(place) ?? { reads: 0, writes: 0 };
    if (kind === "read") requests.reads += 1;
    else requests.writes += 1;
    this.byPlace.set(place, requests);
    const key = `${purpose ?? kind} by ${process.program} at ${place} ${what}`.trimEnd();
    this.byObject.set(key, (this.byObject.get(key) ?? 0) + 1);
  }

  of(place: string): Requests {
    return { reads: 0, writes: 0, ...this.byPlace.get(place) };
  }

  /** By purpose, program, place and objects: `"watch by agent at node-1 /api/v1/pods"`. */
  get details(): ReadonlyMap<string, number> {
    return this.byObject;
  }

  get total(): Requests {
    const all = [...this.byPlace.values()];
    return {
      reads: all.reduce((sum, { reads }) => sum + reads, 0),
      writes: all.reduce((sum, { writes }) => sum + writes, 0),
    };
  }
}
