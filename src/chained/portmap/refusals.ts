/** What the kernel may say to a batch that met somebody else's work. */
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { type Refusal, tryCommit } from "../../linux/nftables/commit.ts";
import { uncountChanges } from "./changes.ts";
import type { Claim } from "./claim.ts";

/** EEXIST: taken. ENOENT: no table. EBUSY: a port of single addresses came back. ERESTART: changed since the look. */
export function throwUnexpected(refusals: readonly Refusal[]): void {
  for (const { error } of refusals) if (!isKernelError(error, "EEXIST", "ENOENT", "EBUSY", "ERESTART")) throw error;
}

/** After ports of single addresses were given up: the note that they were held goes with the last of them. */
export function forgetSingleAddresses(socket: NetlinkSocket, claims: readonly Claim[]): void {
  // Refused while another address of the port is held, or when nothing is left to forget.
  for (const claim of claims) tryCommit(socket, uncountChanges(claim));
}
