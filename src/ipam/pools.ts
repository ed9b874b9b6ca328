/**
 * Which pools an address of one family may come from.
 *
 * Requested pools (by CIDR or by name) are used in the order requested, and
 * must exist, be enabled and be of the family; they need not select the node.
 * Otherwise every enabled pool that selects the node and the namespace may be used.
 * Either way the pool must allow the intended use. Pure.
 */
import type { Unreadable } from "../datastore/read-each.ts";
import { PluginError } from "../errors.ts";
import { API_VERSION, identity } from "../identity.ts";
import { type Address, type Family, formatAddress } from "../ip/address.ts";
import { formatPrefix, isSamePrefix, type Prefix, parsePrefix, prefixContains, prefixCovers } from "../ip/prefix.ts";
import type { PoolAnnouncing } from "../model/pool-announcement.ts";
import { quoted } from "../quote.ts";

/** The namespaces whose pods may use something. */
export interface SelectedNamespaces {
  readonly selector: string;
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
}

/** The namespace of a pod. */
export interface PodNamespace {
  readonly name: string;
  /** Absent: they are not known, because the network config gives no access to the orchestrator's API, or the role none. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** What the allocator needs to know about an IPPool. */
export interface Pool {
  readonly name: string;
  readonly cidr: Prefix;
  /** The prefix length of its blocks. */
  readonly blockLength: number;
  readonly disabled: boolean;
  /** When it was created; empty if unknown. */
  readonly createdAt: string;
  /** Its spec was changed since, maybe the block length: see assign/other-blocks.ts. */
  readonly wasEdited?: boolean;
  /** Why nothing is assigned from it although it is not disabled: it shares addresses with an earlier pool. */
  readonly overlaps?: string;
  /** The same: its fields make it unusable. */
  readonly unusable?: string | undefined;
  readonly natOutgoing: boolean;
  readonly announcing: PoolAnnouncing;
  readonly allowedUses: readonly string[];
  /** For how long released addresses rest; absent: as the configuration says. */
  readonly cooldownSeconds?: number;
  readonly nodeSelector: string;
  readonly selects: (labels: Readonly<Record<string, string>>) => boolean;
  /** Absent: all, and containers without a pod. */
  readonly namespaces?: SelectedNamespaces;
  /** Pods get their addresses again after they were deleted, for that long; absent: the pool does not keep addresses. */
  readonly keepForSeconds?: number;
  /** The administrator says that it does not keep addresses, whatever an annotation asks for. */
  readonly forbidsKeeping?: true;
  /** Its key and the revision that was read. */
  readonly key: string;
  readonly revision: string;
}

export interface PoolCriteria {
  readonly family: Family;
  /** What asks for the family, for messages. */
  readonly familyPlace?: string | undefined;
  /** CIDRs or names; if `undefined` or empty, the node selectors decide. */
  readonly asked?: readonly string[] | undefined;
  /** Where they are requested, for messages. */
  readonly place?: string | undefined;
  /** Pools that cannot be read: only a request for one of them fails. */
  readonly unreadable?: readonly Unreadable[];
  readonly intendedUse: string;
  readonly node: string;
  /** Of the node; not looked at if no selector depends on them. */
  readonly labels: Readonly<Record<string, string>>;
  /** Of the pod; absent: a container without a pod. "any": whether a pod of some namespace could use the pools. */
  readonly namespace?: PodNamespace | "any" | undefined;
}

export function choosePools(pools: readonly Pool[], criteria: PoolCriteria): readonly Pool[] {
  const asked = criteria.asked ?? [];
  const { unreadable = [], place } = criteria;
  const chosen =
    asked.length > 0
      ? askedPools(pools, criteria.family, { asked, place, unreadable })
      : selectingPools(pools, criteria);
  const usable = chosen.filter((pool) => whyNotAllowed(pool, criteria) === undefined);
  if (usable.length > 0) return usable;
  throw new PluginError(
    "addresses-exhausted",
    `Cannot assign an IPv${criteria.family} address${shownFamilyPlace(criteria)}: ${whyNone(pools, chosen, criteria)}`,
    {
      details: [
        describePools(pools),
        ...unreadable.map(({ failure }) => failure.message),
        ...(asked.length === 0 ? howToGetOne(pools, chosen, criteria) : []),
      ].join("; "),
    },
  );
}

function shownFamilyPlace({ familyPlace }: PoolCriteria): string {
  return familyPlace === undefined ? "" : ` (${familyPlace})`;
}

/** What makes a pool usable on the node if none are requested. */
function howToGetOne(pools: readonly Pool[], chosen: readonly Pool[], criteria: PoolCriteria): readonly string[] {
  if (poolsOfOtherNamespaces(pools, criteria).length > 0) return [howToSelectNamespace(criteria)];
  return chosen.length > 0 ? [] : [howToSelectNode(pools, criteria)];
}

function howToSelectNode(pools: readonly Pool[], { family, node }: PoolCriteria): string {
  const ofFamily = pools.filter(({ cidr }) => cidr.network.family === family);
  const [first] = ofFamily;
  if (first === undefined) return `create one: ${createPoolCommand(family)}`;
  if (ofFamily.every(({ disabled }) => disabled)) {
    return `enable one: ${enablePoolCommand(first.name)}`;
  }
  return `label node ${quoted(node)} so that the node selector of a pool matches it, or create a pool that selects all nodes`;
}

/** If pools select the node, but not the namespace. */
function howToSelectNamespace({ namespace }: PoolCriteria): string {
  if (namespace === undefined || namespace === "any") {
    return "create a pool without a namespaceSelector for containers without a pod";
  }
  if (namespace.labels === undefined) {
    return `let the plugin read namespaces: set "kubernetes.kubeconfig" in the network config, with a role that allows "get" on namespaces; or create a pool without a namespaceSelector`;
  }
  return `label namespace ${quoted(namespace.name)} so that the namespaceSelector of a pool matches it, or create a pool without a namespaceSelector`;
}

export function enablePoolCommand(name: string): string {
  return `${identity.adminTool} patch ippool ${name} -p '{"spec":{"disabled":false}}'`;
}

/** A command that creates a pool of the family, as an example to change. */
export function createPoolCommand(family: Family): string {
  const cidr = family === 4 ? "10.66.0.0/16" : "fd00:66::/64";
  const pool = `{apiVersion: ${API_VERSION}, kind: IPPool, metadata: {name: pods-ipv${family}}, spec: {cidr: "${cidr}", natOutgoing: true}}`;
  return `echo '${pool}' | ${identity.adminTool} create -f -`;
}

/** The enabled pool that contains the address; throws if there is none, or if it is not one of those `asked` for. */
export function poolHolding(
  pools: readonly Pool[],
  address: Address,
  {
    asked = [],
    place,
    shown,
    unreadable = [],
  }: Pick<PoolCriteria, "asked" | "place" | "unreadable"> & { readonly shown?: string } = {},
): Pool {
  const outside = (state: string, listed: readonly Pool[]) =>
    new PluginError(
      "address-outside-pools",
      `Cannot assign address ${shown ?? `"${formatAddress(address)}"`}: ${state}`,
      {
        details: describePools(listed),
      },
    );
  const pool = pools.find((each) => whyNotUsable(each) === undefined && prefixContains(each.cidr, address));
  if (pool === undefined) throw outside("it is not in an enabled pool", pools);
  if (asked.length === 0) return pool;
  const allowed = askedPools(pools, address.family, { asked, place, unreadable });
  if (allowed.includes(pool)) return pool;
  const list = place ?? `"ipam.ipv${address.family}_pools" of the network`;
  throw outside(`it is in pool "${pool.name}", which is not listed in ${list}`, allowed);
}

/** `pools: blue 10.0.0.0/16, red fd00::/64 (disabled)`: the pools that could have been requested, for error messages. */
function describePools(pools: readonly Pool[]): string {
  if (pools.length === 0) return "there are no pools";
  return `pools: ${pools.map(describePool).join(", ")}`;
}

function describePool({ name, cidr, disabled, overlaps, unusable, nodeSelector, namespaces }: Pool): string {
  const limits = [
    disabled ? "disabled" : (overlaps ?? unusable ?? []),
    nodeSelector === "all()" ? [] : `of nodes ${nodeSelector}`,
    namespaces === undefined ? [] : `of namespaces ${namespaces.selector}`,
  ].flat();
  return `${name} ${formatPrefix(cidr)}${limits.length === 0 ? "" : ` (${limits.join(", ")})`}`;
}

/** The pools that are requested, whatever they may be used for; throws for the first that does not exist or is not usable. */
export function askedPools(
  pools: readonly Pool[],
  family: Family,
  {
    asked,
    place,
    unreadable,
  }: Required<Pick<PoolCriteria, "unreadable">> & Pick<PoolCriteria, "place"> & { readonly asked: readonly string[] },
): readonly Pool[] {
  const chosen = asked.map((text) => {
    const pool = poolNamed(pools, text);
    const hidden = unreadable.find(({ key }) => key.endsWith(`/${text}`));
    if (!pool && hidden) throw hidden.failure;
    const fault = pool ? faultOf(pool, family) : whyUnknown(pools, text);
    if (!pool || fault) {
      const shown = place === undefined ? quoted(text) : `${quoted(text)} (${place})`;
      throw new PluginError("pool-unknown", `Cannot use pool ${shown}: ${fault}`, { details: describePools(pools) });
    }
    return pool;
  });
  return [...new Set(chosen)];
}

/** By its name, or by its CIDR in any spelling. */
export function poolNamed(pools: readonly Pool[], text: string): Pool | undefined {
  const cidr = parsePrefix(text);
  return cidr ? pools.find((pool) => isSamePrefix(pool.cidr, cidr)) : pools.find((pool) => pool.name === text);
}

function whyUnknown(pools: readonly Pool[], text: string): string {
  const cidr = parsePrefix(text);
  const around = cidr && pools.find((pool) => prefixCovers(pool.cidr, cidr));
  if (around === undefined) return "no such pool";
  return `it is only a part of pool "${around.name}"; use the pool's name, or its CIDR ${formatPrefix(around.cidr)}`;
}

function faultOf(pool: Pool, family: Family): string | undefined {
  if (pool.cidr.network.family !== family) return `it is of IPv${pool.cidr.network.family}, not of IPv${family}`;
  return whyNotUsable(pool);
}

/** Why nothing new is assigned from the pool, whoever asks; `undefined` if it may be. */
export function whyNotUsable({ disabled, overlaps, unusable }: Pool): string | undefined {
  return disabled ? "it is disabled" : (overlaps ?? unusable);
}

function selectingPools(pools: readonly Pool[], criteria: PoolCriteria): readonly Pool[] {
  return pools.filter(
    (pool) => pool.cidr.network.family === criteria.family && whyNotSelected(pool, criteria) === undefined,
  );
}

/** Whether the selector of the pool matches the node. */
export function isSelectedBy({ nodeSelector, selects }: Pool, node: Pick<PoolCriteria, "labels">): boolean {
  return nodeSelector === "all()" || selects(node.labels);
}

/** Why a pool is not used if none are requested; `undefined` if it is. */
export function whyNotSelected(pool: Pool, criteria: PoolCriteria): string | undefined {
  const unusable = whyNotUsable(pool);
  if (unusable !== undefined) return unusable;
  if (!isSelectedBy(pool, criteria)) {
    return `its node selector ${pool.nodeSelector} does not select node ${quoted(criteria.node)}`;
  }
  if (pool.namespaces === undefined || criteria.namespace === "any") return undefined;
  return whyNotOfNamespace(pool.namespaces, criteria.namespace);
}

/** Why the selector does not select the namespace of a pod; `undefined` if it does. */
export function whyNotOfNamespace(
  { selector, selects }: SelectedNamespaces,
  namespace: PodNamespace | undefined,
): string | undefined {
  const its = `its namespace selector ${selector}`;
  if (namespace === undefined) return `${its} selects no container without a pod`;
  const { name, labels } = namespace;
  if (labels === undefined) return `the labels of namespace ${quoted(name)} are not known, which ${its} needs`;
  return selects(labels) ? undefined : `${its} does not select namespace ${quoted(name)}`;
}

/** Why a pool is not used although it is requested, or selects the node; `undefined` if it is. */
export function whyNotAllowed({ allowedUses }: Pool, { intendedUse }: PoolCriteria): string | undefined {
  return allowedUses.includes(intendedUse) ? undefined : `it does not allow the use "${intendedUse}"`;
}

function whyNone(pools: readonly Pool[], chosen: readonly Pool[], criteria: PoolCriteria): string {
  const { asked = [], family, node } = criteria;
  const ofOthers = asked.length > 0 ? [] : poolsOfOtherNamespaces(pools, criteria);
  if (ofOthers.length > 0) return whyNotServed(ofOthers, criteria);
  if (!pools.some(({ cidr }) => cidr.network.family === family)) return `there is no IPv${family} pool`;
  if (chosen.length === 0) return `no enabled IPv${family} pool selects node ${quoted(node)}`;
  const names = chosen.map((pool) => `"${pool.name}"`).join(", ");
  return `no pool of ${names} allows the use "${criteria.intendedUse}"`;
}

/** Those that only the namespace keeps from being used. */
function poolsOfOtherNamespaces(pools: readonly Pool[], criteria: PoolCriteria): readonly Pool[] {
  return selectingPools(pools, { ...criteria, namespace: "any" }).filter(
    (pool) => whyNotAllowed(pool, criteria) === undefined,
  );
}

/** Why pools that select the node do not serve the namespace, for the error of a pod that finds the others full. */
export function namespaceReasons(pools: readonly Pool[], criteria: PoolCriteria): readonly string[] {
  if ((criteria.asked ?? []).length > 0) return [];
  return reasonsOf(
    poolsOfOtherNamespaces(pools, criteria).filter((pool) => whyNotSelected(pool, criteria) !== undefined),
    criteria,
  );
}

const SHOWN_REASONS = 3;

function reasonsOf(pools: readonly Pool[], criteria: PoolCriteria): readonly string[] {
  const reasons = pools
    .slice(0, SHOWN_REASONS)
    .map((pool) => `pool ${quoted(pool.name)}: ${whyNotSelected(pool, criteria)}`);
  return pools.length > SHOWN_REASONS ? [...reasons, `${pools.length - SHOWN_REASONS} more`] : reasons;
}

function whyNotServed(pools: readonly Pool[], criteria: PoolCriteria): string {
  const { family, node, namespace } = criteria;
  const whom =
    namespace === undefined || namespace === "any"
      ? "a container without a pod"
      : `namespace ${quoted(namespace.name)}`;
  const state = `no enabled IPv${family} pool of node ${quoted(node)} serves ${whom}`;
  return `${state}: ${reasonsOf(pools, criteria).join("; ")}`;
}
