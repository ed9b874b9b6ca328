/**
 * Whether a standard descriptor was there when the process began.
 *
 * The language runtime opens `/dev/null` in place of a missing one, so that
 * writing to it seems to succeed. It opens it close-on-exec, which nothing
 * inherited can be: exec would have closed it.
 */
import { readText } from "../linux/files.ts";

const FLAGS = "flags:";
const CLOSE_ON_EXEC = 0o2000000;

/** `false` also where the kernel does not tell. */
export function wasClosedAtStart(descriptor: 0 | 1): boolean {
  try {
    const status = readText(`/proc/self/fdinfo/${descriptor}`) ?? "";
    const flags = Number.parseInt(status.slice(status.indexOf(FLAGS) + FLAGS.length), 8);
    return (flags & CLOSE_ON_EXEC) !== 0;
  } catch {
    return false;
  }
}
