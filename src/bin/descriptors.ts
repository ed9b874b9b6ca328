/**
 * Whether a standard descriptor was there when the process began.
 *
 * The language runtime opens `/dev/null` in place of a missing one, so that
 * writing to it seems to succeed. It opens it close-on-exec, which nothing
 * inherited can be: exec would have closed it.
 */
const CLOSE_ON_EXEC = 0o2000000;

/** `false` also where the kernel does not tell. */
export async function wasClosedAtStart(descriptor: 0 | 1): Promise<boolean> {
  try {
    const status = await Bun.file(`/proc/self/fdinfo/${descriptor}`).text();
    const flags = /^flags:\s*([0-7]+)/m.exec(status)?.[1] ?? "0";
    return (Number.parseInt(flags, 8) & CLOSE_ON_EXEC) !== 0;
  } catch {
    return false;
  }
}
