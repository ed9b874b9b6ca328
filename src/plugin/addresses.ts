/** Where an attachment's addresses come from: our own IPAM in this process, or the IPAM plugin that the config names. */
import { identity } from "../identity.ts";
import { planAddresses } from "./address-plan.ts";
import type { Attachment, Taken } from "./attachment.ts";
import { loadDelegation } from "./load-delegation.ts";
import { registerWithOwnIpam, unregister } from "./registration.ts";
import type { Session } from "./session.ts";

/** All that the attachment wishes for, or nothing and an error. */
export async function takeAddresses(attachment: Attachment, session: Session): Promise<Taken> {
  const { args, workload } = attachment;
  const { ipam } = session.config;
  if (ipam.type !== identity.ipamType) {
    const { takeFromDelegate } = await loadDelegation();
    return takeFromDelegate(attachment, session);
  }
  const registered = await registerWithOwnIpam(workload, planAddresses({ ipam, args }), session);
  const giveBack = () => unregister(workload, session);
  return { ...registered, giveBack };
}
