/** Why the kernel refuses a message: thrown where it is found out, and turned into a reply by handle.ts. */
import { type ErrnoName, errnoOf } from "../../../src/linux/errno.ts";

export class Refused extends Error {
  readonly errno: number;

  constructor(reason: ErrnoName) {
    super(reason);
    this.errno = errnoOf(reason);
  }
}

/** Returns what is there. */
export function required<Value>(value: Value | undefined, reason: ErrnoName): Value {
  if (value === undefined) throw new Refused(reason);
  return value;
}
