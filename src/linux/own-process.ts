/** What a process does with itself as a whole. */
import { addressOf, pathBytes } from "../system-call.ts";
import { KernelError } from "./kernel-error.ts";
import * as libc from "./libc.ts";

/** The program that this process runs, even if its file has been replaced or is not in this mount namespace. */
export const OWN_PROGRAM = "/proc/self/exe";

const SET_PARENT_DEATH_SIGNAL = 1;
const SET_NAME = 15;
const SIGKILL = 9;

/**
 * The kernel ends this process, as `kill -9` would, when its parent ends, however that happens.
 * Returns whether the parent is still there.
 */
export function endWithParent(parent: number): boolean {
  if (libc.prctl(SET_PARENT_DEATH_SIGNAL, SIGKILL) !== 0) {
    throw new KernelError("ask to be ended with the parent process", libc.lastErrno());
  }
  return libc.getppid() === parent;
}

/** The name that `ps` and `top` show for this process; the kernel keeps 15 bytes of it. */
export function nameProcess(name: string): void {
  libc.prctl(SET_NAME, pathBytes(name));
}

/** Runs the program in place of this one, in the same process and in the namespaces that this thread is in. Returns only by throwing. */
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

/** With the zero that ends the list. */
function addressesOf(texts: readonly Uint8Array[]): BigUint64Array {
  return BigUint64Array.from([...texts.map((text) => BigInt(addressOf(text))), 0n]);
}
