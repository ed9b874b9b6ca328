/** ADD reserves addresses for an attachment; CHECK verifies that it still has them. */
import { type CniDns, type CniResult, EMPTY_RESULT } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { lastChangeOf, readText } from "../../linux/files.ts";
import { quoted } from "../../quote.ts";
import { assign } from "./assign.ts";
import { type AddressInput, decodeHostLocal } from "./config.ts";
import { withNetworkLock } from "./network-lock.ts";
import { openIndex } from "./owner-index.ts";
import { formatCandidate, rangeContaining } from "./range-set.ts";
import { parseResolvConf } from "./resolv-conf.ts";
import type { Owner } from "./store.ts";

/** A CNI call has these fields; a plugin that runs host-local in its own process may change `config` first. */
export interface AttachmentInput extends AddressInput {
  readonly containerId: string;
  readonly ifname: string;
}

export interface AddInput extends AttachmentInput {
  /** What a second ADD of the same attachment gets; by default an error, as from upstream's plugin. */
  readonly whenHeld?: "refuse" | "same addresses";
}

export interface CheckInput extends AttachmentInput {
  readonly prevResult: CniResult | undefined;
}

/** Reserves one address from each range set; throws if one cannot be reserved, and then reserves none. */
export async function hostLocalAdd(input: AddInput, signal: AbortSignal): Promise<CniResult> {
  const config = decodeHostLocal(input);
  const dns = config.resolvConf === undefined ? EMPTY_RESULT.dns : readDns(config.resolvConf);
  const request = { ...config, owner: ownerOf(input), whenHeld: input.whenHeld ?? "refuse" };
  const assigned = await withNetworkLock(config.directory, signal, () => assign(request, openIndex(config.directory)));
  const ips = assigned.map((one) => ({ address: formatCandidate(one), gateway: formatAddress(one.range.gateway) }));
  return { ...EMPTY_RESULT, ips, routes: config.routes, dns };
}

/** Throws unless the attachment has an address, and has every address of `prevResult` that is in the ranges. */
export async function hostLocalCheck(input: CheckInput, signal: AbortSignal): Promise<void> {
  const { directory, rangeSets } = decodeHostLocal(input);
  const owner = ownerOf(input);
  const held =
    lastChangeOf(directory) === undefined
      ? []
      : await withNetworkLock(directory, signal, () => openIndex(directory).addressesOf(owner).addresses);
  const place = `container ${quoted(input.containerId)}, interface "${input.ifname}", in ${quoted(directory)}`;
  if (held.length === 0)
    throw new PluginError("check-failed", `Cannot confirm the addresses: there is no reservation for ${place}`);

  const missing = (input.prevResult?.ips ?? [])
    .map(({ address }) => parseAddress(address.slice(0, address.indexOf("/"))))
    .filter((address) => address !== undefined && rangeSets.some((set) => rangeContaining(set, address) !== undefined))
    .map((address) => (address === undefined ? "" : formatAddress(address)))
    .filter((address) => !held.includes(address));
  if (missing.length === 0) return;
  throw new PluginError(
    "check-failed",
    `Cannot confirm the addresses: there is no reservation of ${missing.join(", ")} for ${place}`,
  );
}

function ownerOf({ containerId, ifname }: AttachmentInput): Owner {
  return { containerId: containerId.trim(), ifname };
}

function readDns(path: string): CniDns {
  const content = readText(path);
  if (content !== undefined) return parseResolvConf(content);
  throw new PluginError("io-failure", `Cannot read ipam.resolvConf: the file ${quoted(path)} does not exist`);
}
