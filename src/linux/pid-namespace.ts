/** Which processes this one can see. Without `node:fs`: an ADD imports it. */
import { placeOf } from "./files.ts";

/** The kernel gives the PID namespace of the machine a fixed inode. */
const PID_NAMESPACE_OF_MACHINE = "4026531836";

/**
 * Whether all processes of the machine can be seen. In a container, process 1 may be that of the container, whose network
 * has no link of the host.
 */
export function isFirstProcessOfMachine(): boolean {
  return placeOf("/proc/self/ns/pid")?.split("/")[1] === PID_NAMESPACE_OF_MACHINE;
}
