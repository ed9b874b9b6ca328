/**
 * DEL: removes what ADD made, and succeeds if nothing is left.
 *
 *   links -> tracked connections -> DEL of the IPAM plugin, if it is not ours -> addresses + endpoint, in one commit
 *
 * In this order no address is released while its link exists, nor while the kernel tracks connections of the pod:
 * policy would not be asked about their next packets. If the datastore is
 * unreachable, DEL fails after removing the links, and the runtime's next DEL
 * finishes. The host-wide turn for the datastore also comes last, so that no
 * process waits while another one's links are removed.
 */
import { decodeArguments } from "../cni/arguments.ts";
import type { DelCall } from "../cni/call.ts";
import { trackedConnections } from "../firewall/tracked-connections.ts";
import { identity } from "../identity.ts";
import { type Address, formatAddress, parseAddress } from "../ip/address.ts";
import { resultAddresses } from "../ipam/plugin/result-addresses.ts";
import type { HostKernel } from "../linux/host-kernel.ts";
import { ALLOWED_SOURCES_GROUP } from "../linux/rtnetlink/own-devices.ts";
import { withoutThoseOfOthers } from "./former-addresses.ts";
import { keepLabels } from "./kept-labels.ts";
import { loadDelegation } from "./load-delegation.ts";
import { forgetOnHost } from "./record-on-host.ts";
import { unregister } from "./registration.ts";
import { addressesOnLink, removeLinks } from "./remove-links.ts";
import { resultMac } from "./result-mac.ts";
import type { Session } from "./session.ts";
import { podFields, type Workload, workloadOf } from "./workload.ts";

export async function del(call: DelCall, session: Session): Promise<void> {
  const mac = resultMac(call.prevResult, call.ifname);
  const workload = workloadOf(call, decodeArguments(call.args), session.node, mac);
  session.note(podFields(workload));
  const { enterPhase, host } = session.surroundings;
  // Opens while the kernel works.
  enterPhase("datastore");
  void session.store();
  enterPhase("kernel");
  const results = resultAddresses(call.prevResult);
  const tracked = await trackedConnections(host.netfilter, (message) => session.log.warning(message));
  const known = knownAddresses(workload, results, host.kernel);
  const link = await removeLinks(workload, call.netns, host);
  const forget = async (addresses: readonly Address[]) =>
    tracked?.forget(link === undefined ? await notOfOthers(addresses, host.kernel) : addresses);
  await forget(known);
  enterPhase("datastore");
  await releaseDelegated(call, session);
  const evidence = { results, likely: known.map(formatAddress), hadLink: link !== undefined };
  const { allowedSources, labels, addresses } = await unregister(workload, session, evidence);
  // First: the endpoint is gone, and a DEL that is repeated would not find its labels.
  if (labels !== undefined) await keepLabels(workload, { labels, netns: call.netns ?? "" }, session);
  // Those that neither the runtime nor the host knew of.
  await forget(addresses);
  await forgetOnHost(workload, session);
  if (allowedSources || link?.group === ALLOWED_SOURCES_GROUP) await forgetSources(session);
}

/** A runtime that keeps no results leaves only the routes. */
function knownAddresses(workload: Workload, results: readonly string[], kernel: HostKernel): readonly Address[] {
  const addresses = results.flatMap((text) => parseAddress(text) ?? []);
  return addresses.length > 0 ? addresses : addressesOnLink(kernel, workload);
}

/**
 * Rarely needed, and loaded only then: a late DEL finds no link, and another container of this host may have had an address
 * since, whose connections go on.
 */
async function notOfOthers(addresses: readonly Address[], kernel: HostKernel): Promise<readonly Address[]> {
  if (addresses.length === 0) return addresses;
  const { readLinks } = await import("../ipam/leaks/host-links.ts");
  return withoutThoseOfOthers(addresses, readLinks(kernel));
}

/** Loaded only after a pod that might use other sources than its addresses. */
async function forgetSources({ surroundings, log }: Session): Promise<void> {
  const { forgetSources: forget } = await import("../firewall/source-prefixes.ts");
  await forget(surroundings.host, (message) => log.warning(message));
}

/** Also if the namespace no longer exists. */
async function releaseDelegated(call: DelCall, session: Session): Promise<void> {
  if (session.config.ipam.type === identity.ipamType) return;
  const { releaseByDelegate } = await loadDelegation();
  await releaseByDelegate(call, session);
}
