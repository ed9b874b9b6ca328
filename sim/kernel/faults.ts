/** What goes wrong between a program and its kernel, at random: everything is off at first. */
import type { ErrnoName } from "../../src/linux/errno.ts";
import type { Random } from "../schedule/random.ts";

export class KernelFaults {
  /** The probability that an event does not reach a socket that listens. */
  lostEvents = 0;
  /** The probability that a request is refused for no reason of its own. */
  refusals = 0;
  /** The probability that a table changes while it is read. */
  interruptedDumps = 0;

  constructor(private readonly random: Random) {}

  losesEvent(): boolean {
    return this.lostEvents > 0 && this.random.chance(this.lostEvents);
  }

  refusal(): ErrnoName | undefined {
    if (this.refusals === 0 || !this.random.chance(this.refusals)) return undefined;
    return this.random.pick(["ENOBUFS", "ENOMEM"]);
  }

  interruptsDump(): boolean {
    return this.interruptedDumps > 0 && this.random.chance(this.interruptedDumps);
  }
}
