/**
 * What the agent writes into its Node about sessions, tunnels and routes, and when: every write reaches all agents of the
 * cluster and whoever watches Nodes.
 *
 *   other than what is written, for 10 s on end ──▶ written, at most once in 30 s; more rarely while it goes on changing
 *
 * The Node itself is the memory of what was written: an agent that starts again and finds the same writes nothing.
 */
import {
  boundedRouting,
  isSameRouting,
  type KnownRouting,
  ROUTING_STATE_ANNOTATION,
  readRoutingState,
  writeRoutingState,
} from "../../model/routing-state.ts";

/** Sessions come up, and tunnels get addresses, within this time. */
const LASTING_MILLISECONDS = 10_000;
const SHORTEST_PAUSE_MILLISECONDS = 30_000;
const LONGEST_PAUSE_MILLISECONDS = 300_000;
/** In a row, before pauses get longer: somebody may be mending it. */
const QUICK_WRITES = 5;
/** A node that is switched off is seen by all its peers: all of them write within this time for each. */
const SPREAD_MILLISECONDS = 50;

type Annotations = Readonly<Record<string, string>> | undefined;

export interface AnnotationMeans {
  /** `undefined` while it is not known: what is written stays. */
  readonly known: () => Promise<KnownRouting | undefined>;
  /** How many nodes there are. */
  readonly peers: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly now: () => Date;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export class RoutingAnnotation {
  private known: KnownRouting | undefined;
  /** Until when what is known must be another than what is written; absent if it is the same. */
  private lastingUntil: number | undefined;
  private last = { at: Number.NEGATIVE_INFINITY, pause: 0, inRow: 0 };

  constructor(private readonly means: AnnotationMeans) {}

  async learn(): Promise<void> {
    const known = await this.means.known();
    this.known = known && boundedRouting(known);
  }

  /** `annotations`: of the Node. */
  isDue(annotations: Annotations): boolean {
    const { known, means, last } = this;
    if (known === undefined || isWritten(known, annotations)) {
      this.lastingUntil = undefined;
      return false;
    }
    const now = means.elapsed();
    this.lastingUntil ??= now + LASTING_MILLISECONDS + means.random() * means.peers() * SPREAD_MILLISECONDS;
    return now >= Math.max(this.lastingUntil, last.at + last.pause);
  }

  /** With what is due; the same object if nothing is. */
  annotated(annotations: Annotations): Annotations {
    if (this.known === undefined || !this.isDue(annotations)) return annotations;
    const { [ROUTING_STATE_ANNOTATION]: _, ...others } = annotations ?? {};
    const text = writeRoutingState(this.known, this.means.now());
    return text === undefined ? others : { ...others, [ROUTING_STATE_ANNOTATION]: text };
  }

  /** It was, or could not be: it is not tried again for a while. */
  written(): void {
    const now = this.means.elapsed();
    const inRow = now - this.last.at < 2 * this.last.pause ? this.last.inRow + 1 : 1;
    const wanted = SHORTEST_PAUSE_MILLISECONDS * 2 ** Math.max(0, inRow - QUICK_WRITES);
    this.last = { at: now, pause: Math.min(wanted, LONGEST_PAUSE_MILLISECONDS), inRow };
    this.lastingUntil = undefined;
  }
}

/** What cannot be read is replaced. */
function isWritten(known: KnownRouting, annotations: Annotations): boolean {
  const written = readRoutingState(annotations);
  if (written === "unreadable") return false;
  if (written === undefined) return known.sessions === undefined && known.problems.length === 0;
  return isSameRouting(known, written);
}
