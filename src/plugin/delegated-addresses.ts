/** Addresses from another IPAM plugin; the endpoint is recorded as with our own. */
import type { CniCall, DelCall } from "../cni/call.ts";
import { reasonOf } from "../config/config-files.ts";
import { effectOf } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { type Address, formatAddress, isSameAddress } from "../ip/address.ts";
import { formatPrefix, parseInterfaceAddress, singlePrefix } from "../ip/prefix.ts";
import { podCidrPlaces } from "../ipam/hostlocal/pod-cidr.ts";
import { decodePools } from "../ipam/records.ts";
import type { RequestedAddress } from "../ipam/requested-addresses.ts";
import { resourcesPrefix } from "../model/keys.ts";
import { mostRecordedValues } from "../model/recorded-annotations.ts";
import { quoted } from "../quote.ts";
import type { AddRequest, Registered } from "./add-request.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";
import { logAnnouncements } from "./log-announcements.ts";
import { HOST_LOCAL, openIpamPlugin } from "./open-ipam-plugin.ts";
import type { PodFacts } from "./pod-facts.ts";
import { record, requireUsable, undoRegistration } from "./registration.ts";
import type { Session } from "./session.ts";
import { readStoredEndpoint } from "./stored-endpoint.ts";
import type { Workload } from "./workload.ts";

/**
 * If a first ADD fails, everything the plugin has assigned to the attachment is released, also by an ADD that was
 * killed before. If a repeated ADD fails, nothing is released: the container uses the addresses.
 */
export async function registerWithDelegate(
  { call, requested, workload, podFacts, found, requireContainer }: AddRequest,
  session: Session,
): Promise<Registered> {
  refusePools(session);
  const [ipam] = await Promise.all([ipamOf(session, call), requireUsable(session)]);
  const undo = async () => {
    // An interrupted ADD must still be able to undo.
    await effectOf("IPAM plugin DEL", () => ipam.del(call, new AbortController().signal));
    await undoRegistration(workload, session);
  };
  try {
    const { ips, routes, dns } = await effectOf("IPAM plugin ADD", () => ipam.add(call, session.signal));
    const addresses = ips.map(({ address }) => parsed(address, session));
    if (addresses.length === 0) throw refusal(session, "it returned no address");
    const most = mostRecordedValues(session.settings.kind);
    if (addresses.length > most) {
      const number = `it returned ${addresses.length} addresses`;
      throw refusal(session, `${number}; at most ${most} can be recorded: give it fewer ranges`);
    }
    requireRequested(requested, addresses, session);
    const isRecorded = found.kind === "nothing" || (await requireSame(addresses, workload, session));
    await record({ workload, podFacts, addresses, requireContainer }, session);
    await logFloating(podFacts, session);
    if (!isRecorded) {
      const { removeEndpointOfFormerNode } = await import("./former-node.ts");
      await removeEndpointOfFormerNode(workload, session, [...addresses, ...found.addresses]);
    }
    session.note({ addresses: addresses.map(formatAddress), ipam: session.config.ipam.type });
    return { addresses, routes, dns, undo };
  } catch (failure) {
    if (found.kind === "own-links") throw failure;
    await undo().catch((trouble) =>
      session.log.error(`Cannot release the addresses: ${reasonOf(trouble)}`, { container: workload.containerId }),
    );
    throw failure;
  }
}

async function logFloating({ requests }: PodFacts, session: Session): Promise<void> {
  if (requests.floatingAddresses === undefined) return;
  const { answers } = await (await session.store()).read([{ kind: "prefix", prefix: resourcesPrefix("ippools") }]);
  logAnnouncements(requests, decodePools(answers[0] ?? []).pools, session);
}

/** Not every plugin knows all the places in which an address can be requested. */
function requireRequested(
  requested: readonly RequestedAddress[],
  addresses: readonly Address[],
  session: Session,
): void {
  const ignored = requested.find(({ address }) => !addresses.some((each) => isSameAddress(each, address)));
  if (ignored === undefined) return;
  throw refusal(
    session,
    `it did not assign "${formatAddress(ignored.address)}" (${ignored.place}), which is requested`,
  );
}

/**
 * Wiring other addresses too would leave the container with an address that is not recorded. Returns whether the
 * attachment has an endpoint: if the node had another name at its first ADD, it has one by another name.
 */
async function requireSame(addresses: readonly Address[], workload: Workload, session: Session): Promise<boolean> {
  const { answers } = await (await session.store()).read([{ kind: "key", key: workload.endpointKey }]);
  const entry = answers[0]?.[0];
  if (entry === undefined) return false;
  const before = readStoredEndpoint(entry).ipNetworks;
  const now = addresses.map((address) => formatPrefix(singlePrefix(address)));
  if (now.length === before.length && now.every((each) => before.includes(each))) return true;
  throw refusal(session, `a second ADD returned ${now.join(", ")} instead of ${before.join(", ")}; run DEL first`);
}

export async function releaseByDelegate(call: DelCall, session: Session): Promise<void> {
  const ipam = await ipamOf(session, call);
  await effectOf("IPAM plugin DEL", () => ipam.del(call, session.signal));
}

export async function ipamOf(session: Session, call: CniCall): Promise<IpamPlugin> {
  const { type } = session.config.ipam;
  const ipam = await openIpamPlugin(type, call, session.surroundings);
  const [place] = type === HOST_LOCAL ? podCidrPlaces(call.config) : [];
  if (place === undefined) return ipam;
  const { servingPodCidrs } = await import("./pod-cidr.ts");
  return servingPodCidrs(ipam, place, session);
}

/** Only our allocator has pools: host-local would ignore them silently. */
function refusePools({ config }: Session): void {
  const { ipv4Pools, ipv6Pools, type } = config.ipam;
  if (type !== HOST_LOCAL || (ipv4Pools === undefined && ipv6Pools === undefined)) return;
  throw new PluginError("config-invalid", 'Cannot choose a pool: "host-local" does not support pools', {
    details: 'remove "ipv4_pools" and "ipv6_pools" from "ipam"',
  });
}

function parsed(text: string, session: Session): Address {
  const read = parseInterfaceAddress(text);
  if (read !== undefined) return read.address;
  throw refusal(session, `${quoted(text)} is not an IP address`);
}

function refusal({ config }: Session, state: string): PluginError {
  return new PluginError(
    "delegate-failed",
    `Cannot use the result of IPAM plugin ${quoted(config.ipam.type)}: ${state}`,
  );
}
