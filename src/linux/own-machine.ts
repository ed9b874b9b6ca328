/** The identity of this machine, read once per process: an agent needs it for every ADD. */
import { identity } from "../identity.ts";
import { readMachineIdentity } from "./machine-identity.ts";

let known: string | undefined;

/** `undefined` if this machine has no ID yet. */
export function ownMachine(): string | undefined {
  known ??= readMachineIdentity(identity);
  return known;
}
