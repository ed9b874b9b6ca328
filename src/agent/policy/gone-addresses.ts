/**
 * Forgets the connections of pods that are gone. Later packets of a tracked connection pass without policy: those of the
 * next pod with the address would, too, on every node where the former one was allowed something. DEL forgets those of its
 * own node; this is for all others.
 *
 *   kernel's sets ──elements that leave──┐
 *                                        ├──> addresses to forget ──at most each second──> one list of all connections
 *   endpoints ──addresses they lose──────┘
 *
 * Only what left a set of this node was let in by it. An address stays if an endpoint has it: pods whose labels change keep
 * their connections until they go, and addresses of network sets are nobody's. What has left while no agent ran is forgotten
 * in any case: nobody knows whose the addresses were. An address that is now part of one of the set's networks has not left:
 * the same rules allow it, and its connections are of pods that live.
 */

import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type Address, addressFromBytes, formatAddress, parseAddress } from "../../ip/address.ts";
import { containsKey } from "../../linux/nftables/intervals.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { addressesOfEndpoint } from "../../policy/compile/entity.ts";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import { familyOfMembers, prefixesTwin } from "../../policy/table/names.ts";
import { LONGEST_MILLISECONDS } from "../../timers.ts";
import { Wakeup } from "../../wakeup.ts";

/** Between two lists of the connections. */
const PACE_MILLISECONDS = 1_000;
/** That many addresses at most are tried again if the list fails. */
const MOST_AGAIN = 10_000;

type EndpointChange = RecordChange<WorkloadEndpoint>;

export interface GoneMeans {
  /** Forgets the connections of all of them. */
  readonly forget: (addresses: readonly Address[]) => Promise<void>;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

interface Gone {
  readonly address: Address;
  /** Another endpoint has got the address since. */
  readonly given: boolean;
}

export class GoneAddresses {
  /** By their text, those that left a set since the last update of the endpoints, or before and an endpoint has them. */
  private readonly left = new Map<string, Address>();
  /** By their text, those whose connections are to be forgotten. */
  private readonly gone = new Map<string, Gone>();
  /** By its text, how many endpoints have an address. */
  private readonly owners = new Map<string, number>();
  /** A set was deleted since the last update of the endpoints. */
  private isSetDeleted = false;
  private readonly wakeup = new Wakeup();

  constructor(private readonly means: GoneMeans) {}

  /** The kernel has acknowledged these changes. */
  changed(delta: TableDelta): void {
    for (const address of membersThatLeft(delta)) this.left.set(formatAddress(address), address);
    this.isSetDeleted ||= Array.from(delta.sets).some(([set, how]) => how === "deleted" && familyOfMembers(set));
  }

  /** The kernel has acknowledged these changes of the table of a former agent. */
  adopted(delta: TableDelta, table: DesiredTable): void {
    for (const address of membersThatLeft(delta, table))
      this.gone.set(formatAddress(address), { address, given: true });
    if (this.gone.size > 0) this.wakeup.notify();
  }

  /** After `changed()` for the same changes. The first ones are all endpoints that there are. */
  update(changes: readonly EndpointChange[]): void {
    for (const change of changes) this.countOwners(change);
    const { isSetDeleted } = this;
    this.isSetDeleted = false;
    if (this.left.size === 0 && this.gone.size === 0 && !isSetDeleted) return;
    const given = new Set(changes.flatMap(gainedBy));
    for (const [text, { address }] of this.gone) if (given.has(text)) this.gone.set(text, { address, given: true });
    for (const text of changes.flatMap(lostBy)) {
      // What was in a set that is deleted at the same time is not known.
      const address = this.left.get(text) ?? (isSetDeleted ? parseAddress(text) : undefined);
      if (address !== undefined) this.gone.set(text, { address, given: given.has(text) });
    }
    for (const text of this.left.keys()) if (!this.owners.has(text)) this.left.delete(text);
    if (this.gone.size > 0) this.wakeup.notify();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.means.wait(LONGEST_MILLISECONDS, AbortSignal.any([signal, this.wakeup.signal]));
      this.wakeup.reset();
      const taken = this.take();
      if (signal.aborted || taken.size === 0) continue;
      try {
        await this.means.forget(Array.from(taken.values(), ({ address }) => address));
      } catch (failure) {
        this.putBack(taken);
        const reason = failure instanceof Error ? failure.message : String(failure);
        this.means.report(`Connections of pods that are gone are still tracked: ${reason}`);
      }
      await this.means.wait(PACE_MILLISECONDS, signal);
    }
  }

  /** Without those that an endpoint has had all the time: one of two records of the same pod may go, for example. */
  private take(): ReadonlyMap<string, Gone> {
    const taken = new Map([...this.gone].filter(([text, { given }]) => given || !this.owners.has(text)));
    this.gone.clear();
    return taken;
  }

  private putBack(taken: ReadonlyMap<string, Gone>): void {
    for (const [text, each] of taken) {
      if (this.gone.size >= MOST_AGAIN) break;
      // An endpoint that has got the address meanwhile must not get its connections either.
      const given = each.given || this.owners.has(text);
      if (!this.gone.has(text)) this.gone.set(text, { ...each, given });
    }
    this.wakeup.notify();
  }

  private countOwners(change: EndpointChange): void {
    const { owners } = this;
    if (change.kind === "put") for (const text of textsOf(change.value)) owners.set(text, (owners.get(text) ?? 0) + 1);
    if (change.previous === undefined) return;
    for (const text of textsOf(change.previous)) {
      const count = (owners.get(text) ?? 0) - 1;
      if (count > 0) owners.set(text, count);
      else owners.delete(text);
    }
  }
}

/** Without elements of which only the data changed. */
function membersThatLeft({ elements }: TableDelta, table?: DesiredTable): readonly Address[] {
  return Array.from(elements).flatMap(([set, { removed, added }]) => {
    const family = familyOfMembers(set);
    if (family === undefined) return [];
    const kept = new Set(added.map(({ key }) => key.toHex()));
    const isCovered = containsKey(table?.sets.get(prefixesTwin(set))?.elements.values() ?? []);
    return removed
      .filter(({ key }) => !kept.has(key.toHex()) && !isCovered(key))
      .flatMap(({ key }) => addressFromBytes(key.subarray(0, family === 4 ? 4 : 16)) ?? []);
  });
}

function lostBy(change: EndpointChange): readonly string[] {
  const { previous } = change;
  if (previous === undefined || change.kind === "unreadable") return [];
  const kept = new Set(change.kind === "put" ? textsOf(change.value) : []);
  return textsOf(previous).filter((text) => !kept.has(text));
}

function gainedBy(change: EndpointChange): readonly string[] {
  if (change.kind !== "put") return [];
  const before = new Set(change.previous === undefined ? [] : textsOf(change.previous));
  return textsOf(change.value).filter((text) => !before.has(text));
}

function textsOf(endpoint: WorkloadEndpoint): readonly string[] {
  return addressesOfEndpoint(endpoint).map(formatAddress);
}
