/**
 * DEL: takes away what ADD gave, and succeeds when there is nothing left.
 *
 *   links -> the IPAM plugin's DEL, where it is not ours -> addresses + endpoint, in one commit
 *
 * In this order no address becomes free while its link lives. A datastore that
 * cannot be reached is an error once the links are gone, and the runtime's next
 * DEL finishes. The turn that the processes of a host take at the datastore
 * comes last, too: nobody waits in line for somebody else's kernel.
 */
import { decodeArguments } from "../cni/arguments.ts";
import type { DelCall } from "../cni/call.ts";
import { identity } from "../identity.ts";
import { resultAddresses } from "../ipam/plugin/result-addresses.ts";
import { loadDelegation } from "./load-delegation.ts";
import { unregister } from "./registration.ts";
import type { Session } from "./session.ts";
import { removeLinks } from "./unwire.ts";
import { workloadOf } from "./workload.ts";

export async function del(call: DelCall, session: Session): Promise<void> {
  const workload = workloadOf(call, decodeArguments(call.args), session.node);
  const { enterPhase, host } = session.surroundings;
  // On its way while the kernel works.
  enterPhase("datastore");
  void session.store();
  enterPhase("kernel");
  await removeLinks(workload, call.netns, host.links);
  enterPhase("datastore");
  await releaseElsewhere(call, session);
  await unregister(workload, session, resultAddresses(call.prevResult));
}

/** Also when the namespace is gone. */
async function releaseElsewhere(call: DelCall, session: Session): Promise<void> {
  if (session.config.ipam.type === identity.ipamType) return;
  const { releaseByDelegate } = await loadDelegation();
  await releaseByDelegate(call, session);
}
