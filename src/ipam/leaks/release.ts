/** Gives back what a search for leaks has found. */
import type { Change, Datastore } from "../../datastore/datastore.ts";
import type { Address } from "../../ip/address.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { blockKey } from "../../model/keys.ts";
import type { Allocator } from "../allocator.ts";
import { decodeBlock } from "../records.ts";
import { guarded, type ReleaseRule } from "../request.ts";
import { allocationsIn, identityOf } from "./allocations.ts";
import type { Leak } from "./find.ts";
import type { NodeRecords } from "./node-records.ts";

interface ReleaseMeans {
  readonly store: Datastore;
  readonly allocator: Allocator;
  /** Called with the addresses before they are released: their connections must not be tracked any more. */
  readonly forget: (addresses: readonly Address[]) => Promise<void>;
  /** Whether one that was assigned again keeps the others. */
  readonly rule?: ReleaseRule;
}

/**
 * Each only if it has not been assigned again, and once its endpoint is gone, if it has one: whoever is stopped half way
 * leaves addresses, which lead the next search to the endpoint; an endpoint would lead nobody. Returns what was released. A
 * failure with one container does not keep those of the others.
 */
export async function releaseLeaks(
  leaks: readonly Leak[],
  { endpoints }: Pick<NodeRecords, "endpoints">,
  { store, allocator, forget, rule }: ReleaseMeans,
): Promise<readonly Address[]> {
  await forget(leaks.map(({ allocation: { address } }) => address));
  const kept = new Set<Leak>();
  const failures: unknown[] = [];
  for (const ofOne of byContainer(leaks).values()) {
    try {
      if (await removeEndpoint(ofOne, endpoints, store)) continue;
    } catch (failure) {
      failures.push(failure);
    }
    for (const leak of ofOne) kept.add(leak);
  }
  const leaving = rule === "all or none" && kept.size > 0 ? [] : leaks.filter((leak) => !kept.has(leak));
  const { released } = await allocator.releaseAddresses(
    leaving.map(({ allocation }) => guarded(allocation)),
    rule,
  );
  if (failures.length > 0) throw failures[0];
  return released;
}

/** Those with an endpoint. Several containers may have one of the same name: sandboxes of one pod, one after another. */
function byContainer(leaks: readonly Leak[]): ReadonlyMap<string, readonly Leak[]> {
  return Map.groupBy(
    leaks.filter(({ allocation: { endpointKey } }) => endpointKey !== undefined),
    ({ allocation: { endpointKey, containerId } }) => `${containerId} ${endpointKey}`,
  );
}

const ATTEMPTS = 5;

/**
 * Whether the container has no endpoint any more. An ADD of the same container assigns the addresses again: the blocks are
 * the guard. One that has read them before, and commits afterwards, expects the endpoint that it has read.
 */
async function removeEndpoint(
  leaks: readonly Leak[],
  endpoints: NodeRecords["endpoints"],
  store: Datastore,
): Promise<boolean> {
  const [first] = leaks;
  const entry = endpoints.get(first?.allocation.endpointKey ?? "");
  // A newer sandbox of the same pod has an endpoint of the same name.
  if (first === undefined || !entry?.value.includes(`"${first.allocation.containerId}"`)) return true;
  const keys = [...new Set(leaks.map(({ allocation }) => blockKey(allocation.block)))];
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const { answers } = await store.read(keys.map((key) => ({ kind: "key", key })));
    if (!hasOnlyJudged(leaks, answers.flat().map(decodeBlock))) return false;
    const guards = keys.map((key, index): Change => ({ kind: "expect", key, revision: answers[index]?.[0]?.revision }));
    const written = await store.commit([...guards, { kind: "delete", key: entry.key, revision: entry.revision }]);
    if (written.ok) return true;
    if (written.key === entry.key) return written.reason === "missing";
  }
  return false;
}

/** Whether the container has no address in the blocks but those that were judged. */
function hasOnlyJudged(leaks: readonly Leak[], blocks: readonly IPAMBlock[]): boolean {
  const judged = new Set(leaks.map(({ allocation }) => identityOf(allocation)));
  const owners = new Set(leaks.map(({ allocation: { handle, ifname } }) => `${handle} ${ifname}`));
  return blocks
    .flatMap(allocationsIn)
    .every((each) => !owners.has(`${each.handle} ${each.ifname}`) || judged.has(identityOf(each)));
}

export async function releaseSurplus(
  blocks: readonly IPAMBlock[],
  { node, allocator }: { readonly node: string; readonly allocator: Allocator },
): Promise<void> {
  for (const { cidr } of blocks) await allocator.releaseAffinity({ node, block: cidr, inUse: "keep" });
}
