/** What can fail between a program and nf_tables although the request is right. Each fault happens once. */
import { type ErrnoName, errnoOf } from "../../../src/linux/errno.ts";

export class NetfilterFaults {
  readonly #refusals: ErrnoName[] = [];
  #interruptions = 0;

  /** The next batch is refused as a whole. */
  refuseBatch(reason: "ENOMEM" | "EPERM" | "ERESTART"): void {
    this.#refusals.push(reason);
  }

  /** The next lists, as many as this, end with the mark that the ruleset was changed meanwhile. */
  interruptLists(count: number): void {
    this.#interruptions += count;
  }

  takeRefusal(): number | undefined {
    const reason = this.#refusals.shift();
    return reason === undefined ? undefined : errnoOf(reason);
  }

  takeInterruption(): boolean {
    if (this.#interruptions === 0) return false;
    this.#interruptions--;
    return true;
  }
}
