/**
 * The first free address of a list: whoever names the list gets one of each family that it has.
 *
 *   list (IPAddressList) ── namespace selected? ── one request for each family ── first free in the list's order
 *
 * Like an address that is asked for by name, each must be in an enabled pool; node selectors, allowed uses and reservations
 * do not apply, and one that rests for another namespace is passed over. Two that ask at the same time see the same first
 * address: one of them loses its race for the block, and gets the next.
 */
import type { Change, Wanted } from "../../datastore/datastore.ts";
import { type ErrorKind, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type Address, type Family, formatAddress } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { endOfKeeping, isWaiting, keptOf } from "../../model/kept-address.ts";
import { quoted } from "../../quote.ts";
import { whyNotOfNamespace, whyNotUsable } from "../pools.ts";
import type { AddressList } from "../records.ts";
import type { AddressRequest } from "../request.ts";
import type { View } from "../view.ts";
import type { Choice, Search } from "./choice.ts";
import { takeAddress, type Unavailable, unavailableHere } from "./given-address.ts";
import { heldAddress } from "./held-address.ts";

export type ListRequest = Extract<AddressRequest, { kind: "listed" }>;

/** One address of a list. */
export interface ListedRequest {
  readonly kind: "of list";
  readonly family: Family;
  /** Of the family, in the order of the list. */
  readonly addresses: readonly Address[];
  readonly list: AddressList;
  readonly request: ListRequest;
}

/** For one address. */
export type OneRequest = Exclude<AddressRequest, { kind: "listed" }> | ListedRequest;

/** A request for each family that the list has, and that is wanted. */
export function requestsOfList(request: ListRequest, list: AddressList | undefined): readonly ListedRequest[] {
  if (list === undefined) throw refusal(request, "there is no IPAddressList of that name");
  const ofFamily = (family: Family) => list.addresses.filter((address) => address.family === family);
  const { families } = request;
  const missing = families?.value.find((family) => ofFamily(family).length === 0);
  if (families !== undefined && missing !== undefined) {
    const fix = `add an IPv${missing} address to the list, or remove "IPv${missing}" from that annotation`;
    throw refusal(request, `the list has no IPv${missing} address, which ${families.place} asks for`, fix);
  }
  return (families?.value ?? FAMILIES).flatMap((family): readonly ListedRequest[] => {
    const addresses = ofFamily(family);
    return addresses.length === 0 ? [] : [{ kind: "of list", family, addresses, list, request }];
  });
}

const FAMILIES = [4, 6] as const;

export function listedAddress(search: Search, listed: ListedRequest): Choice {
  return heldAddress(search) ?? firstFree(search, listed);
}

/** Who holds an address keeps it, also if the list is not for its namespace any more. */
function firstFree(search: Search, { addresses, list, request }: ListedRequest): Choice {
  requireNamespace(search, list, request);
  const passedOver: PassedOver[] = [];
  for (const [index, address] of addresses.entries()) {
    const found = unavailableHere(search, address) ?? take(search, address);
    if (found.kind === "read")
      return { kind: "read", wanted: [...found.wanted, ...nextBlocks(search, addresses, index)] };
    if (found.kind !== "unavailable") return found;
    passedOver.push({ address, why: found });
  }
  throw noneFree(search.family, request, passedOver);
}

export function requireNamespace(
  { request: { podNamespace } }: Search,
  { namespaces }: AddressList,
  request: ListRequest,
): void {
  const reason = namespaces && whyNotOfNamespace(namespaces, podNamespace);
  if (reason === undefined) return;
  const fix = "label the namespace, or change the namespaceSelector of the list";
  throw refusal(request, `the list is not for this namespace: ${reason}`, fix);
}

function take(search: Search, address: Address): Choice | Unavailable {
  const pool = poolOf(search.view, address);
  if (pool !== undefined) return takeAddress(search, address, pool);
  return { kind: "unavailable", error: "address-outside-pools", reason: "it is not in an enabled pool" };
}

function poolOf(view: View, address: Address) {
  return view.pools().find((each) => whyNotUsable(each) === undefined && prefixContains(each.cidr, address));
}

const FIRST_BUNDLE = 4;
/** Two families must fit into one transaction of etcd, which takes 128 operations. */
const NEXT_BUNDLE = 40;

/** The blocks of the addresses that follow, as far as they are not known: more of them as more have been looked at. */
function nextBlocks({ view }: Search, addresses: readonly Address[], index: number): readonly Wanted[] {
  const bundle = index === 0 ? FIRST_BUNDLE : NEXT_BUNDLE;
  const wanted = new Map<string, Wanted>();
  for (const address of addresses.slice(index + 1)) {
    const pool = poolOf(view, address);
    const cidr = pool && blockOf(address, pool.blockLength);
    if (cidr === undefined || view.block(cidr).kind !== "unknown") continue;
    wanted.set(view.blockKey(cidr), view.wantedBlock(cidr));
    if (wanted.size === bundle) break;
  }
  return [...wanted.values()];
}

/** Nothing is given of a list that changed since it was read. */
export function listGuards(requests: readonly { readonly kind: string }[]): readonly Change[] {
  const lists = requests.filter(isListed).map(({ list }) => list);
  const guards = lists.map(({ key, revision }) => [key, { kind: "expect", key, revision }] as const);
  return [...new Map(guards).values()];
}

function isListed(request: { readonly kind: string }): request is ListedRequest {
  return request.kind === "of list";
}

interface PassedOver {
  readonly address: Address;
  readonly why: Unavailable;
}

const SHOWN = 3;

function noneFree(family: Family, request: ListRequest, passedOver: readonly PassedOver[]): PluginError {
  const { length } = passedOver;
  const kept = passedOver.filter(({ why }) => isWaiting(why.owner));
  const used = passedOver.filter(({ why }) => why.owner !== undefined).length - kept.length;
  const waiting = kept.length === 0 ? "" : `, ${kept.length} kept for pods that do not run`;
  const shown = passedOver.slice(0, SHOWN).map(({ address, why }) => `${formatAddress(address)} ${stateOf(why)}`);
  const states = [...shown, ...(length > SHOWN ? [`and ${length - SHOWN} more`] : [])].join("; ");
  const error = errorOf(passedOver);
  const advice =
    error === "try-again-later"
      ? `the runtime tries again; add addresses to the list, or run fewer pods: a Deployment with maxSurge runs that many more while it rolls over${howToFree(kept)}`
      : "correct the addresses of the list, or enable their pools";
  return new PluginError(
    error,
    `Cannot assign an IPv${family} address of IPAddressList ${shownList(request)}: none of its ${length} IPv${family} addresses is free, ${used} in use${waiting}: ${states}`,
    { details: `${advice}; "${identity.adminTool} describe ipaddresslist ${request.list}" shows who has each` },
  );
}

/** Another pod may end, and what rests will have rested; everything else stays until somebody changes it. */
function errorOf(passedOver: readonly PassedOver[]): ErrorKind {
  const reasons = passedOver.map(({ why }) => why);
  if (reasons.some(({ owner, error }) => owner !== undefined || error === "try-again-later")) return "try-again-later";
  return reasons.find(({ error }) => error !== "address-outside-pools")?.error ?? "address-outside-pools";
}

function howToFree([first]: readonly PassedOver[]): string {
  if (first === undefined) return "";
  return `; or free what is kept: ${identity.adminTool} ipam release --ip ${formatAddress(first.address)}`;
}

function stateOf({ owner, reason }: Unavailable): string {
  if (owner === undefined) return `(${reason})`;
  const { pod, namespace, container, node } = owner.secondary;
  const name =
    container === undefined ? `handle ${quoted(owner.handleId ?? "unknown")}` : `container ${quoted(container)}`;
  const who = pod === undefined ? name : `pod "${namespace === undefined ? pod : `${namespace}/${pod}`}"`;
  const kept = isWaiting(owner) ? keptOf(owner) : undefined;
  if (kept !== undefined) return `kept for ${who} until ${endOfKeeping(kept)?.toISOString() ?? "it is released"}`;
  return `by ${who}${node === undefined ? "" : ` on node ${quoted(node)}`}`;
}

function refusal(request: ListRequest, rule: string, details = ""): PluginError {
  return new PluginError("annotation-invalid", `Cannot use IPAddressList ${shownList(request)}: ${rule}`, { details });
}

/** `"web"`, and the annotation that names it. */
export function shownList({ list, place }: ListRequest): string {
  return `${quoted(list)} (${place})`;
}
