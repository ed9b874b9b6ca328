/** ADD and CHECK: addresses for an attachment, and whether it still holds them. */
import { type CniDns, type CniResult, EMPTY_RESULT } from "../../cni/result.ts";
import { PluginError } from "../../errors.ts";
import { formatAddress, parseAddress } from "../../ip/address.ts";
import { lastChangeOf, readText } from "../../linux/files.ts";
import { assign } from "./assign.ts";
import { type AddressInput, decodeHostLocal } from "./config.ts";
import { openIndex } from "./owner-index.ts";
import { formatCandidate, rangeHolding } from "./range-set.ts";
import { parseResolvConf } from "./resolv-conf.ts";
import type { Owner } from "./store.ts";
import { inTurn } from "./turn.ts";

/** A call of the protocol fits; a plugin that runs host-local in its own process may change `config` first. */
export interface AttachmentInput extends AddressInput {
  readonly containerId: string;
  readonly ifname: string;
}

export interface AddInput extends AttachmentInput {
  /** What a second ADD gets; "refuse" when absent, as upstream's plugin does. */
  readonly whenHeld?: "refuse" | "same addresses";
}

export interface CheckInput extends AttachmentInput {
  readonly prevResult: CniResult | undefined;
}

/** Reserves one address of each range set: all of them, or none and an error. */
export async function hostLocalAdd(input: AddInput, signal: AbortSignal): Promise<CniResult> {
  const config = decodeHostLocal(input);
  const dns = config.resolvConf === undefined ? EMPTY_RESULT.dns : readDns(config.resolvConf);
  const request = { ...config, owner: ownerOf(input), whenHeld: input.whenHeld ?? "refuse" };
  const given = await inTurn(config.directory, signal, () => assign(request, openIndex(config.directory)));
  const ips = given.map((one) => ({ address: formatCandidate(one), gateway: formatAddress(one.range.gateway) }));
  return { ...EMPTY_RESULT, ips, routes: config.routes, dns };
}

/** Throws unless the attachment holds an address, and every one of `prevResult` that lies in the ranges. */
export async function hostLocalCheck(input: CheckInput, signal: AbortSignal): Promise<void> {
  const { directory, rangeSets } = decodeHostLocal(input);
  const owner = ownerOf(input);
  const held =
    lastChangeOf(directory) === undefined
      ? []
      : await inTurn(directory, signal, () => openIndex(directory).holdingOf(owner).addresses);
  const place = `container "${input.containerId}" by "${input.ifname}" in "${directory}"`;
  if (held.length === 0) throw new PluginError("check-failed", `Cannot find an address of ${place}`);

  const missing = (input.prevResult?.ips ?? [])
    .map(({ address }) => parseAddress(address.slice(0, address.indexOf("/"))))
    .filter((address) => address !== undefined && rangeSets.some((set) => rangeHolding(set, address) !== undefined))
    .map((address) => (address === undefined ? "" : formatAddress(address)))
    .filter((address) => !held.includes(address));
  if (missing.length === 0) return;
  throw new PluginError("check-failed", `Cannot find ${missing.join(", ")} among the addresses of ${place}`);
}

function ownerOf({ containerId, ifname }: AttachmentInput): Owner {
  return { containerId: containerId.trim(), ifname };
}

function readDns(path: string): CniDns {
  const content = readText(path);
  if (content !== undefined) return parseResolvConf(content);
  throw new PluginError("io-failure", `Cannot read ipam.resolvConf: there is no file "${path}"`);
}
