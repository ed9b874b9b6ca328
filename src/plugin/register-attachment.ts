/**
 * Registers an attachment: its addresses are assigned and its endpoint is
 * recorded. The addresses come from our own IPAM in this process, in the same
 * commit as the endpoint, or from the IPAM plugin in the config, or from an
 * annotation that by-passes IPAM.
 */
import { identity } from "../identity.ts";
import type { AddRequest, Registered } from "./add-request.ts";
import { loadDelegation } from "./load-delegation.ts";
import { registerWithOwnIpam, undoRegistration } from "./registration.ts";
import type { Session } from "./session.ts";

/** Registers all requested addresses and the endpoint, or nothing and throws. */
export async function registerAttachment(request: AddRequest, session: Session): Promise<Registered> {
  const { workload } = request;
  const { addressesWithoutIpam } = request.podFacts.requests;
  if (addressesWithoutIpam !== undefined) {
    const { registerWithoutIpam } = await import("./without-ipam.ts");
    return registerWithoutIpam(request, addressesWithoutIpam, session);
  }
  if (session.config.ipam.type !== identity.ipamType) {
    const { registerWithDelegate } = await loadDelegation();
    return registerWithDelegate(request, session);
  }
  const registered = await registerWithOwnIpam(request, session);
  return { ...registered, undo: () => undoRegistration(workload, session, registered.kept) };
}
