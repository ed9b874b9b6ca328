/** What the collector hands on: to the history of the node, its JSON lines, its metrics and those who follow. */
import type { FlowLosses, FlowRecord } from "../../flows/flow-record.ts";

/** What the roll-ups add. */
export interface FlowCounts {
  readonly flows: number;
  readonly packets: number;
  readonly bytes: number;
}

/** Part of a flow for the roll-ups: names of its record may have changed since it was put. */
export interface SummedFlow {
  readonly record: FlowRecord;
  readonly added: FlowCounts;
}

/** A record, and for `flows explain` the records of its ends in the datastore, as JSON (`EndName.endpoint`). */
export interface SeenFlow {
  readonly record: FlowRecord;
  readonly source?: string;
  /** Of who answers: of the backend if there is one. */
  readonly destination?: string;
  /** What the roll-ups add for it, and whether it was never put before; absent: what is not in its former row. */
  readonly added?: FlowCounts & { readonly isNew: boolean };
}

export interface SeenResource {
  readonly kind: string;
  readonly key: string;
  /** Absent: it is gone. */
  readonly value?: string;
}

export interface OpenRecords {
  readonly records: readonly FlowRecord[];
  /** How many more were open. */
  readonly leftOut: number;
}

/** No method throws or waits: what cannot be stored is counted. */
export interface FlowSink {
  /**
   * What is new or has changed; a record with a known ID replaces the former one. Its counters are those since the connection
   * began. `overLimit`: what is only summed in the roll-ups. Each of these is put once, when it has ended, or when the collector ends. `sums`:
   * of records that were put before their names were sure.
   */
  put(records: readonly SeenFlow[], overLimit: readonly FlowRecord[], sums?: readonly SummedFlow[]): void;
  /** Resources that policy depends on, from this time on. */
  putResources(resources: readonly SeenResource[], since: number): void;
  /** The current numbers: once a second, if they have changed. */
  noteLosses(losses: CollectorLosses): void;
  /**
   * The records that are still open, at most this many, the newest first. Asked for once, when a collector starts: a connection
   * that is still there keeps its ID, the others are put as ended. What is open beyond this number is noted as ended.
   */
  openRecords(most: number): OpenRecords;
  /** When an earlier collector was last there: the sums have the connections that began before. */
  summedUntil?(): number | undefined;
}

/** The losses that the collector counts itself. */
export type CollectorLosses = Omit<FlowLosses, "notStored" | "notLogged" | "stagedNotJudged" | "withoutCollector">;
