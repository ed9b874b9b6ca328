/** What every simulated server has: it can be down, break its watches or let those of a place lag, and counts its requests. */
import type { SimulatedProcess } from "../schedule/process.ts";
import type { FaultyNetwork, Server } from "./network.ts";
import { FaultyStream } from "./stream.ts";
import { Traffic } from "./traffic.ts";

interface OpenStream {
  readonly place: string;
  silence(): void;
  end(): void;
  break(failure: unknown): void;
}

/** Some have delivered something by then, others have not. */
const UNTIL_ENDED_MILLISECONDS = 20;

export abstract class FaultyServer implements Server {
  readonly traffic = new Traffic();
  private readonly streams = new Set<OpenStream>();
  /** Until when, by place. */
  private readonly stalls = new Map<string, number>();
  private readonly absences = new Map<string, number>();
  private readonly endings = new Map<string, number>();
  private upAgainAt = 0;
  private answersAgainAt = 0;

  constructor(protected readonly network: FaultyNetwork) {}

  /** Forgets the history: a watch can only begin at what is present now. */
  abstract compact(): void;
  /** What a client of this server hears if its watch breaks. */
  protected abstract brokenWatch(): unknown;

  get reads(): number {
    return this.traffic.total.reads;
  }

  get writes(): number {
    return this.traffic.total.writes;
  }

  /** What its own clock shows, as the header `Date` of its responses. */
  get date(): string {
    return this.network.scheduler.date.toUTCString();
  }

  isUp(): boolean {
    return this.network.scheduler.now >= this.upAgainAt;
  }

  /** Down for this long: requests are refused, and all watches break. */
  restart(milliseconds: number): void {
    this.upAgainAt = Math.max(this.upAgainAt, this.network.scheduler.now + milliseconds);
    this.breakWatches();
  }

  /** Executes nothing for this long, and then everything: etcd without a leader, a disk that is stuck. */
  hang(milliseconds: number): void {
    this.answersAgainAt = Math.max(this.answersAgainAt, this.network.scheduler.now + milliseconds);
  }

  hangsUntil(): number {
    return this.answersAgainAt;
  }

  /** Of one place, or of all. `milliseconds`: new ones of that place break at once for so long. */
  breakWatches(place?: string, milliseconds = 0): void {
    if (place !== undefined) this.extend(this.absences, place, milliseconds);
    for (const stream of [...this.streams]) {
      if (place === undefined || stream.place === place) stream.break(this.brokenWatch());
    }
  }

  /** They end as if they had lasted long enough, and so do new ones of that place for so long, soon after they are accepted. */
  endWatches(place: string, milliseconds: number): void {
    this.extend(this.endings, place, milliseconds);
    for (const stream of [...this.streams]) if (stream.place === place) stream.end();
  }

  /** The server forgets them, and their clients hear nothing of it. */
  loseWatches(place?: string): void {
    for (const stream of [...this.streams]) if (place === undefined || stream.place === place) stream.silence();
  }

  /** Nothing arrives at the watches of this place for so long. */
  stallWatches(place: string, milliseconds: number): void {
    this.extend(this.stalls, place, milliseconds);
  }

  openStream<Item>(process: SimulatedProcess, place: string): FaultyStream<Item> {
    // A server that hangs sends nothing either.
    const stalledUntil = () => Math.max(this.stalls.get(place) ?? 0, this.answersAgainAt);
    const stream = new FaultyStream<Item>({ network: this.network, process, place, stalledUntil });
    this.streams.add(stream);
    stream.onClose(() => this.streams.delete(stream));
    const lasts = (until: ReadonlyMap<string, number>) => (until.get(place) ?? 0) > this.network.scheduler.now;
    if (lasts(this.absences)) stream.break(this.brokenWatch());
    else if (lasts(this.endings)) this.network.scheduler.after(UNTIL_ENDED_MILLISECONDS, () => stream.end());
    return stream;
  }

  private extend(ends: Map<string, number>, place: string, milliseconds: number): void {
    ends.set(place, Math.max(ends.get(place) ?? 0, this.network.scheduler.now + milliseconds));
  }
}
