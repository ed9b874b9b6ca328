/** How many requests a server was asked for, by the place they came from: at rest there are hardly any. */
export interface Requests {
  readonly reads: number;
  readonly writes: number;
}

export class Traffic {
  private readonly byPlace = new Map<string, { reads: number; writes: number }>();

  count(place: string, kind: "read" | "write"): void {
    const requests = this.byPlace.get(place) ?? { reads: 0, writes: 0 };
    if (kind === "read") requests.reads += 1;
    else requests.writes += 1;
    this.byPlace.set(place, requests);
  }

  of(place: string): Requests {
    return { reads: 0, writes: 0, ...this.byPlace.get(place) };
  }

  get total(): Requests {
    const all = [...this.byPlace.values()];
    return {
      reads: all.reduce((sum, { reads }) => sum + reads, 0),
      writes: all.reduce((sum, { writes }) => sum + writes, 0),
    };
  }
}
