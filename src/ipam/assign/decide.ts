/**
 * One assignment as a whole: every address of the request is assigned, or nothing is
 * committed. From the facts to the changes of one transaction.
 */
import type { Change, Decision, OrderedChange, Wanted } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { Address, Family } from "../../ip/address.ts";
import { prefixContains } from "../../ip/prefix.ts";
import { type BlockAttribute, INTERFACE_ATTRIBUTE, type IPAMBlock, NETWORK_ATTRIBUTE } from "../../model/ipam-block.ts";
import { addressAt } from "../block.ts";
import type { Facts } from "../facts.ts";
import { changesToTake, surplusTouches } from "../handle.ts";
import { requireOwnNode } from "../node-machine.ts";
import { choosePools, namespaceReasons, type Pool, type PoolCriteria } from "../pools.ts";
import type { AddressRequest, AssignedAddress, Assignment, AssignRequest } from "../request.ts";
import { View } from "../view.ts";
import { fromAffineBlocks, fromReadBlocks } from "./affine-block.ts";
import { byBorrowing, fromAnyBlock } from "./borrowed-block.ts";
import type { Choice, Search } from "./choice.ts";
import { givenAddress } from "./given-address.ts";
import { heldAddress } from "./held-address.ts";
import {
  holdsKept,
  type KeepingRequest,
  keepAttributes,
  keepingRequest,
  keptAddress,
  poolAt,
  requireAllowedTime,
  requireKeepingAllowed,
  requireUsable,
} from "./kept-address.ts";
import { listedAddress, listGuards, type OneRequest, requestsOfList } from "./listed-address.ts";
import { fromNewBlock } from "./new-block.ts";
import { staleAffinityChanges, unreadDeselected } from "./stale-affinity.ts";
import { unconfirmedClaimChanges } from "./unconfirmed-claim.ts";

export interface AssignOutcome extends Assignment {
  /** Every block an address lies in, as it is after the commit. */
  readonly blocks: readonly IPAMBlock[];
  readonly nodeRegistered: boolean;
}

/** What a decision needs besides the records. */
export interface AssignMeans {
  /** Of this host. */
  readonly now: Date;
  /** Of the datastore: for rests. */
  readonly datastoreTime: Date;
  readonly isHostAddress?: ((address: Address) => boolean) | undefined;
}

export function decideAssign(request: AssignRequest, facts: Facts, means: AssignMeans): Decision<AssignOutcome> {
  const view = new View(facts, request.node);
  const { node, machineIdentity, keep } = request;
  if (machineIdentity !== undefined && view.knowsNode())
    requireOwnNode(view.registeredNode(), { node, machineIdentity });
  return keep === undefined
    ? decideFor(request, view, means)
    : decideKeeping(keepingRequest(request, keep), request, { view, means });
}

/** An attachment that has addresses already keeps them as they are recorded. */
function decideKeeping(
  keeping: KeepingRequest,
  { keep: _, ...ordinary }: AssignRequest,
  { view, means }: { readonly view: View; readonly means: AssignMeans },
): Decision<AssignOutcome> {
  const isAlways = keeping.keep.when === "always";
  if (!isAlways && !view.pools().some(({ keepForSeconds }) => keepForSeconds !== undefined)) {
    return decideFor(ordinary, view, means);
  }
  const unread = view.unreadHandles([ordinary.handle, keeping.handle]);
  if (unread.length > 0) return { kind: "read", wanted: unread };
  const before = heldByContainer(ordinary, view, means);
  if (typeof before !== "boolean") return before;
  if (before) return decideFor(ordinary, view, means);
  const holds = holdsKept(view, keeping);
  if (typeof holds !== "boolean") return { kind: "read", wanted: holds };
  if (isAlways || holds) return decideFor(keeping, view, means);
  const decision = decideFor(ordinary, view, means);
  if (decision.kind === "read") return decision;
  const pools = decision.outcome.addresses.map(({ address }) => poolAt(view, address));
  const isKept = pools.some((pool) => pool?.keepForSeconds !== undefined);
  if (isKept && !pools.some((pool) => pool?.forbidsKeeping)) return decideFor(keeping, view, means);
  const unused = surplusTouches(view, keeping.handle, keysOf(decision.changes));
  return { ...decision, changes: [...unused, ...decision.changes] };
}

/** Whether it has addresses that are not kept, or what must be read to tell. Its handle may count more than it has. */
function heldByContainer(
  request: AssignRequest,
  view: View,
  means: AssignMeans,
): boolean | Extract<Choice, { kind: "read" }> {
  const found = FAMILIES.map((family) =>
    heldAddress(openSearch({ kind: "automatic", family }, { view, request, ...means })),
  );
  const wanted = found.flatMap((choice) => (choice?.kind === "read" ? choice.wanted : []));
  return wanted.length > 0 ? { kind: "read", wanted } : found.some((choice) => choice !== undefined);
}

const FAMILIES = [4, 6] as const;

/** `request.keep`: the addresses are kept. */
function decideFor(request: AssignRequest, view: View, means: AssignMeans): Decision<AssignOutcome> {
  const addressRequests = request.addressRequests.flatMap((each): readonly OneRequest[] =>
    each.kind === "listed" ? requestsOfList(each, view.addressList(each.list)) : [each],
  );
  requireOnePerFamily(addressRequests);
  if (isKeeping(request)) {
    requireAllowedTime(view, request.keep);
    requireUsable(view, request, addressRequests);
  }
  const choices = addressRequests.map((addressRequest) =>
    chooseAndKeep(addressRequest, openSearch(addressRequest, { view, request, ...means })),
  );

  const wanted = choices.flatMap((choice) => (choice.kind === "read" ? choice.wanted : []));
  if (wanted.length > 0) return { kind: "read", wanted: withoutRepeats([...wanted, ...unreadDeselected(view)]) };
  const made = choices.flatMap((choice) => (choice.kind === "read" ? [] : choice));
  return {
    kind: "commit",
    changes: changesOf(made, view, { request, guards: listGuards(addressRequests), ...means }),
    outcome: outcomeOf(made, view, { request, addressRequests }),
  };
}

type Made = Exclude<Choice, { kind: "read" }>;

function isKeeping(request: AssignRequest): request is KeepingRequest {
  return request.keep !== undefined;
}

/** How long an address is kept is recorded with it, and its pool may say so. */
function chooseAndKeep(addressRequest: OneRequest, search: Search): Choice {
  const { request, view, attributes } = search;
  if (!isKeeping(request)) return choose(addressRequest, search);
  const ofPool = (pool: Pool | undefined): Choice => {
    const secondary = { ...attributes.secondary, ...keepAttributes(request.keep, pool) };
    const kept = { ...search, attributes: { ...attributes, secondary } };
    return keptAddress(kept, addressRequest, request) ?? choose(addressRequest, kept);
  };
  const choice = ofPool(undefined);
  if (choice.kind !== "take") return choice;
  const pool = poolAt(view, addressAt(choice.taken.block, choice.taken.ordinal));
  if (choice.wasHeld === undefined && choice.formerNode === undefined) requireKeepingAllowed(pool, request.keep);
  return ofPool(pool);
}

function choose(addressRequest: OneRequest, search: Search): Choice {
  if (addressRequest.kind === "given") return givenAddress(search, addressRequest);
  if (addressRequest.kind === "of list") return listedAddress(search, addressRequest);
  return (
    heldAddress(search) ??
    fromReadBlocks(withPools(search, addressRequest)) ??
    fromAffineBlocks(withPools(search, addressRequest)) ??
    fromNewBlock(withPools(search, addressRequest)) ??
    byBorrowing(withPools(search, addressRequest)) ??
    fromAnyBlock(withPools(search, addressRequest))
  );
}

function openSearch(
  addressRequest: OneRequest,
  given: AssignMeans & { readonly view: View; readonly request: AssignRequest },
): Search {
  const { view, request, now, datastoreTime, isHostAddress = () => false } = given;
  return {
    view,
    request,
    family: familyOf(addressRequest),
    pools: [],
    isHostAddress,
    attributes: attributesFor(request, now),
    now: datastoreTime,
    sequenceNumber: BigInt(now.getTime()) * 1_000_000n,
  };
}

/** Chosen only now: who holds an address gets it back, whatever became of the pools. */
function withPools(search: Search, addressRequest: Extract<AddressRequest, { kind: "automatic" }>): Search {
  const { view, request, family } = search;
  const criteria: PoolCriteria = {
    family,
    familyPlace: addressRequest.familyPlace,
    asked: addressRequest.pools,
    place: addressRequest.poolsPlace,
    unreadable: view.unreadablePools(),
    intendedUse: request.intendedUse,
    node: request.node,
    namespace: request.podNamespace,
    get labels() {
      return view.nodeLabels() ?? {};
    },
  };
  const passedOver = () => namespaceReasons(view.pools(), criteria);
  return { ...search, pools: choosePools(view.pools(), criteria), passedOver };
}

function attributesFor(request: AssignRequest, now: Date): BlockAttribute {
  return {
    handleId: request.handle,
    secondary: {
      ...request.attributes,
      node: request.node,
      timestamp: now.toISOString(),
      ...(request.network === undefined ? {} : { [NETWORK_ATTRIBUTE]: request.network }),
      ...(request.interface === undefined ? {} : { [INTERFACE_ATTRIBUTE]: request.interface }),
    },
  };
}

/**
 * In an order in which a stop after any of them is harmless: blocks that hold nothing for the handle; claims and empty blocks, the handle, the addresses, the
 * claims confirmed; then what is only tidying.
 */
function changesOf(
  made: readonly Made[],
  view: View,
  {
    request,
    guards,
    datastoreTime: now,
  }: { readonly request: AssignRequest; readonly guards: readonly Change[]; readonly datastoreTime: Date },
): readonly OrderedChange[] {
  const taking = made.flatMap((choice) => (choice.kind === "take" ? choice : []));
  const taken = taking.map((choice) => choice.taken.block);
  const handle = changesToTake(view, request.handle, taken);
  const changes = [
    ...(taking.length === 0 ? [] : guards),
    ...handle.first,
    ...taking.flatMap((choice) => choice.changes.claim),
    ...handle.before,
    ...taking.flatMap((choice) => choice.changes.take),
    ...taking.flatMap((choice) => choice.changes.confirm),
    ...handle.after,
  ];
  const held = made.flatMap((choice) => (choice.kind === "held" ? choice.block : []));
  const confirmed = [...changes, ...unconfirmedClaimChanges(view, request.node, { held, busy: keysOf(changes) })];
  if (taken.length === 0 || !view.knowsAffinities()) return confirmed;
  return [...confirmed, ...staleAffinityChanges(view, request.node, { busy: keysOf(confirmed), now })];
}

function keysOf(changes: readonly { readonly key: string }[]): ReadonlySet<string> {
  return new Set(changes.map((change) => change.key));
}

function outcomeOf(
  made: readonly Made[],
  view: View,
  { request, addressRequests }: { readonly request: AssignRequest; readonly addressRequests: readonly OneRequest[] },
): AssignOutcome {
  const pools = view.pools();
  const addresses = made.map((choice, index): AssignedAddress => {
    const { block, ordinal } = choice.kind === "take" ? choice.taken : choice;
    const address = addressAt(block, ordinal);
    const pool = pools.find((each) => prefixContains(each.cidr, address))?.name;
    return {
      address,
      block: block.cidr,
      ...(pool === undefined ? {} : { pool }),
      given: addressRequests[index]?.kind !== "automatic",
      held: choice.kind === "held" || choice.wasHeld === true,
      ...keptField(choice, request),
      ...(choice.kind === "take" && choice.formerNode !== undefined ? { formerNode: choice.formerNode } : {}),
    };
  });
  const blocks = made.map((choice) => (choice.kind === "take" ? choice.taken.block : choice.block));
  const unreadablePools = view.unreadablePools();
  return {
    handle: request.handle,
    addresses,
    pools,
    unreadablePools,
    blocks,
    nodeRegistered: !view.knowsNode() || view.nodeLabels() !== undefined,
  };
}

function keptField(choice: Made, request: AssignRequest): Pick<AssignedAddress, "kept"> {
  if (!isKeeping(request)) return {};
  const isNew = choice.kind === "take" && choice.wasHeld === undefined && choice.waited === undefined;
  return { kept: isNew && choice.formerNode === undefined ? "from now on" : "again" };
}

function familyOf(addressRequest: OneRequest): Family {
  return addressRequest.kind === "given" ? addressRequest.address.family : addressRequest.family;
}

function requireOnePerFamily(addressRequests: readonly OneRequest[]): void {
  const families = addressRequests.map(familyOf);
  if (new Set(families).size === families.length) return;
  throw new PluginError("internal", "Cannot assign addresses: more than one of a family was asked for");
}

function withoutRepeats(wanted: readonly Wanted[]): readonly Wanted[] {
  return [...new Map(wanted.map((each) => [JSON.stringify(each), each])).values()];
}
