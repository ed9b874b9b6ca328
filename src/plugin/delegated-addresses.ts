/** Addresses from another IPAM plugin; the endpoint is recorded by us all the same. */
import type { CniCall, DelCall } from "../cni/call.ts";
import { PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { Attachment, Taken } from "./attachment.ts";
import { effectOf } from "./effect.ts";
import type { IpamPlugin } from "./ipam-plugin.ts";
import { openIpamPlugin } from "./open-ipam-plugin.ts";
import { record, requireUsable, unregister } from "./registration.ts";
import type { Session } from "./session.ts";

export async function takeFromDelegate({ call, workload }: Attachment, session: Session): Promise<Taken> {
  refusePools(session);
  const [ipam] = await Promise.all([ipamOf(session, call), requireUsable(session)]);
  const { ips, routes, dns } = await effectOf("IPAM plugin ADD", () => ipam.add(call, session.signal));
  const giveBack = async () => {
    // What stopped us must not stop the giving back.
    await effectOf("IPAM plugin DEL", () => ipam.del(call, new AbortController().signal));
    await unregister(workload, session);
  };
  try {
    const addresses = ips.map(({ address }) => parsed(address, session));
    if (addresses.length === 0) throw refusal(session, "it gave no address");
    await record(workload, addresses, session);
    return { addresses, routes, dns, giveBack };
  } catch (failure) {
    await giveBack().catch((trouble) => session.log.error(`Cannot give back the addresses: ${trouble}`));
    throw failure;
  }
}

export async function releaseByDelegate(call: DelCall, session: Session): Promise<void> {
  const ipam = await ipamOf(session, call);
  await effectOf("IPAM plugin DEL", () => ipam.del(call, session.signal));
}

export function ipamOf({ config, surroundings }: Session, call: CniCall): Promise<IpamPlugin> {
  return openIpamPlugin(config.ipam.type, call, surroundings.executable);
}

/** Pools are the allocator's: host-local would ignore the wish, and nobody would notice. */
function refusePools({ config }: Session): void {
  const { ipv4Pools, ipv6Pools, type } = config.ipam;
  if (type !== "host-local" || (ipv4Pools === undefined && ipv6Pools === undefined)) return;
  throw new PluginError("config-invalid", 'Cannot choose a pool: "host-local" knows no pools', {
    details: 'remove "ipv4_pools" and "ipv6_pools" from "ipam"',
  });
}

function parsed(text: string, session: Session): Address {
  const read = parseInterfaceAddress(text);
  if (read !== undefined) return read.address;
  throw refusal(session, `"${text}" is no address`);
}

function refusal({ config }: Session, state: string): PluginError {
  return new PluginError("delegate-failed", `Cannot use the answer of IPAM plugin "${config.ipam.type}": ${state}`);
}
