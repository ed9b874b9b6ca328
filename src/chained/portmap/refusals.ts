/** How the kernel may refuse a batch that conflicts with others. */
import { isKernelError } from "../../linux/kernel-error.ts";
import type { NetlinkSocket } from "../../linux/netlink-socket.ts";
import { type Refusal, tryCommit } from "../../linux/nftables/commit.ts";
import { uncountChanges } from "./changes.ts";
import type { Claim } from "./claim.ts";

/** EEXIST: in use. ENOENT: no table. EBUSY: a port of single addresses is in use again. ERESTART: changed since it was read. */
export function throwUnexpected(refusals: readonly Refusal[]): void {
  for (const { error } of refusals) if (!isKernelError(error, "EEXIST", "ENOENT", "EBUSY", "ERESTART")) throw error;
}

/** After ports of single addresses were released: the note about them is removed with the last of them. */
export function forgetSingleAddresses(socket: NetlinkSocket, claims: readonly Claim[]): void {
  // Refused while another address of the port is in use, or if there is no note.
  for (const claim of claims) tryCommit(socket, uncountChanges(claim));
}
