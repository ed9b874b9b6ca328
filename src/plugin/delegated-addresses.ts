/**
 * Addresses from an IPAM plugin that is not ours: `host-local` or any other, run
 * by the rules of CNI. The endpoint is recorded by us all the same.
 */

import type { AddCall, CheckCall, DelCall, GcCall, StatusCall } from "../cni/call.ts";
import { type DelegateRequest, delegateAdd, runDelegate } from "../cni/delegate.ts";
import { EMPTY_RESULT } from "../cni/result.ts";
import { PluginError } from "../errors.ts";
import type { Address } from "../ip/address.ts";
import { parseInterfaceAddress } from "../ip/prefix.ts";
import type { Attachment, Taken } from "./attachment.ts";
import { effectOf } from "./effect.ts";
import { record, requireUsable, unregister } from "./registration.ts";
import type { Session } from "./session.ts";

/** Shorter than the two minutes that a kubelet waits. */
const LIMIT_MILLISECONDS = 60_000;

export async function takeFromDelegate({ call, workload }: Attachment, session: Session): Promise<Taken> {
  refusePools(session);
  await requireUsable(session);
  const request = requestOf(call, "ADD", session);
  const { ips, routes, dns } = await effectOf("IPAM plugin ADD", () => delegateAdd(request, call.cniVersion));
  const giveBack = async () => {
    // The signal that stopped us must not stop the giving back.
    const unstoppable = { ...requestOf(call, "DEL", session), signal: new AbortController().signal };
    await effectOf("IPAM plugin DEL", () => runDelegate(unstoppable));
    await unregister(workload, session);
  };
  try {
    if (ips.length === 0) throw refusal(session, "it gave no address");
    const addresses = ips.map(({ address }) => parsed(address, session));
    await record(workload, addresses, session);
    return { addresses, routes, dns: dns ?? EMPTY_RESULT.dns, giveBack };
  } catch (failure) {
    await giveBack().catch((trouble) => session.log.error(`Cannot give back the addresses: ${trouble}`));
    throw failure;
  }
}

export async function releaseByDelegate(call: DelCall, session: Session): Promise<void> {
  await effectOf("IPAM plugin DEL", () => runDelegate(requestOf(call, "DEL", session)));
}

type AnyCall = AddCall | CheckCall | DelCall | GcCall | StatusCall;

function requestOf(call: AnyCall, command: AnyCall["command"], session: Session): DelegateRequest {
  return {
    type: session.config.ipam.type,
    command,
    environment: call.environment,
    stdin: call.stdin,
    limitMilliseconds: LIMIT_MILLISECONDS,
    signal: session.signal,
  };
}

/** Pools are ours; an IPAM plugin that knows none would take the request for granted and ignore it. */
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
