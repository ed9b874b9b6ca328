/**
 * Whether a standard descriptor was closed when the process started.
 *
 * The language runtime opens `/dev/null` in place of a closed one, so that
 * writing to it seems to succeed. It opens it close-on-exec, which an inherited
 * descriptor cannot be: exec would have closed it.
 */
import { isClosedOnExec } from "../linux/standard-streams.ts";

export function wasClosedAtStart(descriptor: 0 | 1): boolean {
  return mayBeNull(descriptor) && isClosedOnExec(descriptor);
}

/** Comparing the times of two files is enough for most calls, and cheaper than loading the code that reads the flag. */
function mayBeNull(descriptor: 0 | 1): boolean {
  return (descriptor === 0 ? Bun.stdin : Bun.stdout).lastModified === Bun.file("/dev/null").lastModified;
}
