import { expect } from "bun:test";

/** For the stderr of a call: it has no line but those at INFO. */
export const NOTHING_UNUSUAL: string = expect.stringMatching(/^(\S+ \S+ \[INFO\]\[\d+\] .*\n)*$/);
