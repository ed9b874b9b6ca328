/**
 * Proves what the annotations of pods claim, for all parts of the agent: they see endpoints only through this refinement of
 * the replica. The decision is in ipam/proven-endpoint.ts; here are its facts, and when to decide again.
 *
 *   endpoints with claims ─┐
 *   blocks of IPAM ────────┼─▶ what counts ─▶ replica ─▶ routes, NAT, BGP, sets
 *   records of this host ──┘        └─▶ what does not count for a while: log, metric, `node status`
 *
 * Nearly all pods have no claims: the kubelet reports their addresses. Those that have some wait for their block or for
 * the record of their ADD, so only they are kept, and found by the number of their pod.
 */

import type { Refinement } from "../../datastore/replica/refined-kind.ts";
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import type { Address } from "../../ip/address.ts";
import { nthAddress, ordinalOf } from "../../ip/block.ts";
import { PrefixIndex } from "../../ip/prefix-index.ts";
import { ownerOf, type Proof, provenEndpoint } from "../../ipam/proven-endpoint.ts";
import type { RefusedClaims } from "../../ipam/refused-claims.ts";
import type { OwnerNumbers, PodOnNode } from "../../model/block-owners.ts";
import { claimsOf, withoutClaims } from "../../model/claimed-endpoint.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { isRegular } from "../../routing/counted-blocks.ts";
import type { RoutedBlock, RoutedPool } from "../../routing/facts.ts";
import { LONGEST_MILLISECONDS } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";

interface BlockUpdate {
  readonly changes: {
    readonly blocks4: readonly RecordChange<RoutedBlock>[];
    readonly blocks6: readonly RecordChange<RoutedBlock>[];
  };
}

export interface ProvenMeans extends Omit<Proof, "isAssigned" | "assignedTo"> {
  readonly numbers: OwnerNumbers;
  /** As known now. */
  readonly pools: () => Iterable<Pick<RoutedPool, "prefix" | "blockLength" | "createdAt">>;
  /** Monotonic milliseconds. */
  readonly elapsed: () => number;
  readonly report: (message: string) => void;
  /** An endpoint of this node that claims something: what of it counts. */
  readonly decided: (endpoint: WorkloadEndpoint) => void;
  /** What does not count has changed: for `node status`. */
  readonly publish: (refused: readonly RefusedClaims[]) => void;
}

interface Claiming {
  /** The number of its pod; `undefined` if it is not that of a pod. */
  readonly owner: number | undefined;
  readonly isOwn: boolean;
  readonly refused: readonly string[];
  readonly endpoint: Pick<WorkloadEndpoint, "metadata" | "spec">;
}

/** Some claim of an endpoint is refused, not always the same one. */
interface RefusedTime {
  readonly since: number;
  /** `undefined`: still. */
  readonly until: number | undefined;
}

/** Endpoints wait no longer for the first list of blocks. */
const FIRST_LIST_MILLISECONDS = 10_000;
/** The record of an ADD follows its endpoint at once. */
const LOOK_MILLISECONDS = { first: 100, longest: 10_000 } as const;
/** A claim may come before its block or its record. */
const REPORT_MILLISECONDS = 15_000;
/** The watch of the blocks may stall; until then the kubelet has reported what is true. */
const LATE_MILLISECONDS = 60_000;
/** More changed blocks than this: every claim is decided again. */
const FEW_BLOCKS = 16;

export class ProvenEndpoints {
  readonly refinement: Refinement<WorkloadEndpoint> = {
    isReady: () => this.isReady,
    refine: (key, endpoint) => this.refine(key, endpoint),
  };
  private readonly blocks: OwnedBlocks;
  private readonly proof: Proof;
  private readonly claiming = new Map<string, Claiming>();
  private readonly keysByOwner = new Map<number, string>();
  /** Of this node's pods. Outlives their claims and records: users can change the one and blank the other at any moment. */
  private readonly refusedTimes = new Map<string, RefusedTime>();
  private readonly wakeup = new Wakeup();
  private hasBlocks = false;
  private isReady = false;
  private published: readonly RefusedClaims[] = [];

  constructor(private readonly means: ProvenMeans) {
    this.blocks = new OwnedBlocks(means);
    this.proof = {
      ...means,
      isAssigned: (address, pod) => this.blocks.isAssigned(address, pod),
      assignedTo: (pod) => this.blocks.assignedTo(pod),
    };
  }

  /** Claims of this node's pods that have not counted for some time. */
  get refused(): readonly RefusedClaims[] {
    return this.published;
  }

  /** For an endpoint that was read from the datastore itself; `undefined` if it cannot be decided yet. */
  settled(endpoint: WorkloadEndpoint): WorkloadEndpoint | undefined {
    const settled = withoutClaims(endpoint);
    const { endpoint: proven } = provenEndpoint(settled, this.proof);
    const claimed = claimsOf(settled)?.ipNetworks ?? [];
    if (claimed.every((each) => proven.spec.ipNetworks?.includes(each))) return proven;
    const { name, namespace = "" } = endpoint.metadata;
    const since = this.refusedTimes.get(ENDPOINT.key({ name, namespace }))?.since ?? Number.POSITIVE_INFINITY;
    return this.hasBlocks && this.means.elapsed() - since >= LATE_MILLISECONDS ? proven : undefined;
  }

  /** `refresh`: of the replica. Resolves when the updates have ended and the signal is aborted. */
  async run(
    updates: AsyncIterable<BlockUpdate>,
    {
      refresh,
      wait,
      signal,
    }: {
      readonly refresh: (keys: Iterable<string>) => void;
      /** Resolves early if the signal is aborted. */
      readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    const start = () => {
      if (this.isReady) return;
      this.isReady = true;
      refresh([]);
    };
    const followBlocks = async () => {
      let isFirst = true;
      for await (const { changes } of updates) {
        if (isFirst) this.blocks.clear();
        const changed = this.note([...changes.blocks4, ...changes.blocks6]);
        // After a restart of this part: a block that is gone meanwhile is in no change.
        const due = isFirst ? new Set(this.claiming.keys()) : changed;
        isFirst = false;
        this.hasBlocks = true;
        listed.abort();
        start();
        if (due.size > 0) refresh(due);
      }
    };
    const listed = new AbortController();
    const startWithoutBlocks = async () => {
      await wait(FIRST_LIST_MILLISECONDS, AbortSignal.any([signal, listed.signal]));
      start();
    };
    await Promise.all([followBlocks(), startWithoutBlocks(), this.lookAtRecords(refresh, wait, signal)]);
  }

  /** Looks for records of this host while claims of its pods wait for them. */
  private async lookAtRecords(
    refresh: (keys: Iterable<string>) => void,
    wait: (milliseconds: number, signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    let pause: number = LOOK_MILLISECONDS.first;
    while (!signal.aborted) {
      const due = [...this.claiming].filter(([, { isOwn, refused }]) => isOwn && refused.length > 0);
      this.publish();
      // A new claim does not wait for others that nothing will ever prove.
      await wait(due.length === 0 ? LONGEST_MILLISECONDS : pause, AbortSignal.any([signal, this.wakeup.signal]));
      if (signal.aborted) return;
      pause = this.wakeup.isNotified ? LOOK_MILLISECONDS.first : Math.min(2 * pause, LOOK_MILLISECONDS.longest);
      this.wakeup.reset();
      refresh(due.map(([key]) => key));
    }
  }

  private refine(key: string, endpoint: WorkloadEndpoint | undefined): WorkloadEndpoint | undefined {
    const former = this.claiming.get(key);
    if (former !== undefined) this.forget(key, former);
    const claims = endpoint && claimsOf(endpoint);
    if (endpoint === undefined || claims === undefined) {
      this.noteRefusal(key, false);
      return endpoint;
    }
    const { endpoint: proven, refused } = provenEndpoint(endpoint, this.proof);
    const isSame = former !== undefined && Bun.deepEquals(former.refused, refused);
    const isOwn = endpoint.spec.node === this.means.node;
    const pod = ownerOf(endpoint);
    const owner = pod && this.means.numbers.of(pod);
    this.claiming.set(key, { owner, isOwn, refused, endpoint });
    if (owner !== undefined) this.keysByOwner.set(owner, key);
    if (isOwn) this.noteRefusal(key, refused.length > 0);
    if (isOwn) this.means.decided(proven);
    if (isOwn && !isSame && refused.length > 0) this.wakeup.notify();
    return proven;
  }

  private forget(key: string, { owner }: Claiming): void {
    this.claiming.delete(key);
    if (owner !== undefined) this.keysByOwner.delete(owner);
  }

  /** A moment without refused claims does not start the time again: a user could repeat it for ever. */
  private noteRefusal(key: string, isRefused: boolean): void {
    const now = this.means.elapsed();
    const known = this.refusedTimes.get(key);
    if (isRefused)
      this.refusedTimes.set(key, {
        since: known === undefined || isOver(known, now) ? now : known.since,
        until: undefined,
      });
    else if (known !== undefined && known.until === undefined) this.refusedTimes.set(key, { ...known, until: now });
  }

  /** Returns the endpoints that must be decided again. */
  private note(changes: readonly RecordChange<RoutedBlock>[]): ReadonlySet<string> {
    const due = new Set<string>();
    for (const change of changes) {
      // What was known of an unreadable block stays.
      if (change.kind === "unreadable") continue;
      const block = change.kind === "put" ? change.value : undefined;
      const owners = this.blocks.set(change.previous, block);
      if (this.claiming.size === 0 || changes.length > FEW_BLOCKS) continue;
      for (const key of [...owners].map((owner) => this.keysByOwner.get(owner))) if (key !== undefined) due.add(key);
    }
    return changes.length > FEW_BLOCKS ? new Set(this.claiming.keys()) : due;
  }

  private publish(): void {
    const { elapsed, report, publish } = this.means;
    for (const [key, time] of this.refusedTimes) if (isOver(time, elapsed())) this.refusedTimes.delete(key);
    const lasting = [...this.claiming].filter(
      ([key, { refused }]) =>
        refused.length > 0 && elapsed() - (this.refusedTimes.get(key)?.since ?? elapsed()) >= REPORT_MILLISECONDS,
    );
    const now = lasting.map(
      ([
        ,
        {
          endpoint: { metadata, spec },
          refused,
        },
      ]): RefusedClaims => ({
        namespace: metadata.namespace ?? "",
        pod: spec.pod ?? metadata.name,
        refused: [...refused],
      }),
    );
    if (Bun.deepEquals(now, this.published)) return;
    const known = new Set(this.published.map((each) => JSON.stringify(each)));
    this.published = now;
    publish(now);
    for (const each of now.filter((row) => !known.has(JSON.stringify(row)))) {
      report(`Annotations of pod ${each.namespace}/${each.pod} do not count: ${each.refused.join("; ")}`);
    }
  }
}

function isOver({ until = Number.POSITIVE_INFINITY }: RefusedTime, now: number): boolean {
  return now - until >= LATE_MILLISECONDS;
}

/** The owners of all blocks. */
class OwnedBlocks {
  private readonly byPrefix = new PrefixIndex<RoutedBlock>();

  constructor(private readonly means: Pick<ProvenMeans, "numbers" | "pools">) {}

  clear(): void {
    this.byPrefix.clear();
  }

  /** Returns the owners that may have lost or got an address. */
  set(former: RoutedBlock | undefined, block: RoutedBlock | undefined): ReadonlySet<number> {
    if (former !== undefined) this.byPrefix.delete(former.prefix);
    const changed = new Set(changedOwners(former?.owners ?? [], block?.owners ?? []));
    const prefix = (former ?? block)?.prefix;
    for (const { owners = [] } of prefix === undefined ? [] : this.byPrefix.overlapping(prefix)) {
      for (const owner of Array.from(owners)) changed.add(owner);
    }
    if (block !== undefined) this.byPrefix.set(block.prefix, block);
    return changed;
  }

  assignedTo(pod: PodOnNode): readonly Address[] {
    const number = this.means.numbers.of(pod);
    const found: Address[] = [];
    for (const { prefix, owners } of this.byPrefix.values()) {
      for (let at = owners?.indexOf(number) ?? -1; at >= 0; at = owners?.indexOf(number, at + 1) ?? -1) {
        const address = nthAddress(prefix, at);
        if (address !== undefined && this.isAssigned(address, pod)) found.push(address);
      }
    }
    return found;
  }

  isAssigned(address: Address, pod: PodOnNode): boolean {
    const number = this.means.numbers.of(pod);
    const blocks = this.counted(this.byPrefix.around(address));
    return (
      blocks.length > 0 && blocks.every((block) => block.owners?.[ordinalOf(block.prefix, address) ?? -1] === number)
    );
  }

  /** One that is not of its pool does not count beside one that is; several that are not must agree. */
  private counted(blocks: readonly RoutedBlock[]): readonly RoutedBlock[] {
    if (blocks.length < 2) return blocks;
    const pools = [...this.means.pools()];
    const regular = blocks.filter(({ prefix }) => isRegular(prefix, pools));
    return regular.length > 0 ? regular : blocks;
  }
}

function* changedOwners(before: ArrayLike<number>, after: ArrayLike<number>): Generator<number> {
  for (let ordinal = 0; ordinal < Math.max(before.length, after.length); ordinal += 1) {
    const [former, owner] = [before[ordinal], after[ordinal]];
    if (Object.is(former, owner)) continue;
    if (former !== undefined) yield former;
    if (owner !== undefined) yield owner;
  }
}
