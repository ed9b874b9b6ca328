/** System calls that change the calling process as a whole. */
import { addressOf, pathBytes } from "../system-call.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

/** The program that this process runs, even if its file has been replaced or is not in this mount namespace. */
export const OWN_PROGRAM = "/proc/self/exe";

const SET_PARENT_DEATH_SIGNAL = 1;
const SET_NAME = 15;
const SIGKILL = 9;

/**
 * The kernel kills this process (SIGKILL) when its parent ends, for whatever reason.
 * Returns whether the parent still runs.
 */
export function endWithParent(parent: number): boolean {
  if (libc.prctl(SET_PARENT_DEATH_SIGNAL, SIGKILL) !== 0) {
    throw new KernelError("set the parent-death signal", libc.lastErrno());
  }
  return libc.getppid() === parent;
}

/** The name that `ps` and `top` show for this process; the kernel keeps 15 bytes of it. */
export function nameProcess(name: string): void {
  libc.prctl(SET_NAME, pathBytes(name));
}

/** Replaces this program by another one, in the same process and in the namespaces of this thread. Returns only by throwing. */
export function replaceProcess(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): never {
  const variables = Object.entries(environment).map(([name, value = ""]) => `${name}=${value}`);
  const [path, argumentTexts, variableTexts] = [pathBytes(program), args.map(pathBytes), variables.map(pathBytes)];
  libc.execve(path, addressesOf(argumentTexts), addressesOf(variableTexts));
  throw new KernelError(`run "${program}"`, libc.lastErrno());
}

/** With the zero at the end of the list. */
function addressesOf(texts: readonly Uint8Array[]): BigUint64Array {
  return BigUint64Array.from([...texts.map((text) => BigInt(addressOf(text))), 0n]);
}
