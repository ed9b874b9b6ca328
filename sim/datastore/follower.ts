/** A process that follows the records of IPAM by the product's replica, and starts again after it was killed. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { type Replica, startReplica } from "../../src/datastore/replica.ts";
import { ALL_AFFINITIES_PREFIX, blocksPrefix, HANDLES_PREFIX } from "../../src/model/keys.ts";
import type { Records } from "../judge/records.ts";
import { SimulatedProcess } from "../schedule/process.ts";
import type { Random } from "../schedule/random.ts";
import type { Scheduler } from "../schedule/scheduler.ts";

interface Values {
  readonly blocks: string;
  readonly handles: string;
  readonly affinities: string;
}

const PREFIXES = { blocks: blocksPrefix(4), handles: HANDLES_PREFIX, affinities: ALL_AFFINITIES_PREFIX };
const KINDS = ["blocks", "handles", "affinities"] as const;
const decode = ({ value }: { readonly value: string }) => value;

export interface FollowerMeans {
  readonly place: string;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly connect: (process: SimulatedProcess, place: string) => Datastore;
}

export class Follower {
  private starts = 0;
  private process: SimulatedProcess | undefined;
  private replica: Replica<Values> | undefined;

  constructor(private readonly means: FollowerMeans) {}

  /** Again, if it runs already: nothing of it survives. */
  start(): void {
    const { place, scheduler, random, connect } = this.means;
    this.process?.kill();
    this.starts += 1;
    const process = new SimulatedProcess(`follower on ${place}`, scheduler, random.fork(`${place} ${this.starts}`));
    const { signal, elapsed: now, wait } = process;
    const store = connect(process, place);
    const kinds = {
      blocks: { prefix: PREFIXES.blocks, decode },
      handles: { prefix: PREFIXES.handles, decode },
      affinities: { prefix: PREFIXES.affinities, decode },
    };
    this.process = process;
    this.replica = startReplica<Values>(store, kinds, {
      signal,
      clock: { now, wait },
      random: () => process.random.next(),
      watches: store.atomicity === "one object" ? "per kind" : "together",
    });
  }

  /** What its copy lacks or has too much: nothing, if it is of now. */
  differences(records: Records): readonly string[] {
    const { snapshot } = this.replica ?? {};
    if (snapshot === undefined) return [`${this.means.place} has no copy`];
    return KINDS.flatMap((kind) => {
      const truth = new Map(records.under(PREFIXES[kind]).map(({ key, value }) => [key, value]));
      const copy = new Map(snapshot[kind]);
      const keys = [...new Set([...truth.keys(), ...copy.keys()])].filter((key) => truth.get(key) !== copy.get(key));
      return keys.map((key) => `the copy of ${key} at ${this.means.place} is old`);
    });
  }
}
