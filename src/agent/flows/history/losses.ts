/**
 * What collectors have lost, in the history of which it is missing: a row for each of them, with the age of the history when it
 * lost something for the last time. So a restart forgets no loss of a time that the history shows.
 */
import type { Database } from "bun:sqlite";
import * as v from "valibot";
import { type FlowLosses, flowLossesSchema } from "../../../flows/flow-record.ts";
import { parseJson } from "../../../parse-json.ts";

/** Times without a collector are in a table of their own. */
export type CountedLosses = Omit<FlowLosses, "withoutCollector">;

const lossesSchema = v.omit(flowLossesSchema, ["withoutCollector"]);
const NOTHING: CountedLosses = {
  ...{ kernelOverruns: 0, rulesUnknown: 0, overLimit: 0, overCapacity: 0 },
  ...{ deniedSuppressed: 0, namesUnknown: 0, notStored: 0, notLogged: 0 },
};

/** Added to files of earlier releases. */
export const LOSS_SCHEMA =
  "CREATE TABLE IF NOT EXISTS loss (id INTEGER PRIMARY KEY, age INTEGER NOT NULL, counts TEXT NOT NULL);";

export class LossRows {
  /** Of this collector. */
  private own: { readonly id: number; readonly counts: string } | undefined;

  constructor(private readonly database: Database) {}

  /** Part of a transaction. `losses`: of this collector until now. */
  note(losses: CountedLosses, age: number): void {
    const counts = JSON.stringify(losses);
    if (counts === this.own?.counts || Object.values(losses).every((count) => count === 0)) return;
    const put = this.database.query("INSERT OR REPLACE INTO loss (id, age, counts) VALUES (?, ?, ?)");
    const { lastInsertRowid } = put.run(this.own?.id ?? null, age, counts);
    this.own = { id: Number(lastInsertRowid), counts };
  }

  /** Of earlier collectors, from this age of the history on. */
  former(oldestAge: number): CountedLosses {
    const query = "SELECT counts FROM loss WHERE age >= ? AND id <> ?";
    const rows = this.database.query<{ counts: string }, [number, number]>(query).all(oldestAge, this.own?.id ?? 0);
    return rows.map(({ counts }) => v.parse(lossesSchema, parseJson(counts))).reduce(addLosses, NOTHING);
  }

  /** Part of a transaction. */
  removeBefore(age: number): void {
    this.database.query("DELETE FROM loss WHERE age < ? AND id <> ?").run(age, this.own?.id ?? 0);
  }

  /** A transaction has failed. */
  forget(): void {
    this.own = this.own && { ...this.own, counts: "" };
  }
}

export function addLosses(one: CountedLosses, other: CountedLosses): CountedLosses {
  const staged = (one.stagedNotJudged ?? 0) + (other.stagedNotJudged ?? 0);
  return {
    kernelOverruns: one.kernelOverruns + other.kernelOverruns,
    rulesUnknown: one.rulesUnknown + other.rulesUnknown,
    overLimit: one.overLimit + other.overLimit,
    overCapacity: one.overCapacity + other.overCapacity,
    deniedSuppressed: one.deniedSuppressed + other.deniedSuppressed,
    namesUnknown: one.namesUnknown + other.namesUnknown,
    notStored: one.notStored + other.notStored,
    notLogged: one.notLogged + other.notLogged,
    ...(staged === 0 ? {} : { stagedNotJudged: staged }),
  };
}
