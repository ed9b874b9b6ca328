/**
 * Whether a standard descriptor was there when the process began.
 *
 * The language runtime opens `/dev/null` in place of a missing one, so that
 * writing to it seems to succeed. It opens it close-on-exec, which nothing
 * inherited can be: exec would have closed it.
 */
import { isClosedOnExec } from "../linux/standard-streams.ts";

export function wasClosedAtStart(descriptor: 0 | 1): boolean {
  return mayBeNull(descriptor) && isClosedOnExec(descriptor);
}

/** A look at the times of two files is all that most calls need: it takes less than to load what asks for a flag. */
function mayBeNull(descriptor: 0 | 1): boolean {
  return (descriptor === 0 ? Bun.stdin : Bun.stdout).lastModified === Bun.file("/dev/null").lastModified;
}
