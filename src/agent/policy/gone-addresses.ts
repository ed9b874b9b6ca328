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
 * their connections, and addresses of network sets are nobody's.
 */
import type { RecordChange } from "../../datastore/replica/subscription.ts";
import { type Address, addressFromBytes, formatAddress } from "../../ip/address.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { addressesOfEndpoint } from "../../policy/compile/entity.ts";
import type { TableDelta } from "../../policy/table/desired-table.ts";
import { familyOfMembers } from "../../policy/table/names.ts";
import { Bell, LONGEST_MILLISECONDS } from "../bell.ts";

/** Between two lists of the connections. */
const PACE_MILLISECONDS = 1_000;

type EndpointChange = RecordChange<WorkloadEndpoint>;

export interface GoneMeans {
  /** Forgets the connections of all of them. */
  readonly forget: (addresses: readonly Address[]) => Promise<void>;
  readonly report: (message: string) => void;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export class GoneAddresses {
  /** By their text, those that left a set since the last update of the endpoints. */
  private readonly left = new Map<string, Address>();
  /** Those whose connections are to be forgotten. `given`: another endpoint has got the address since. */
  private readonly gone = new Map<string, { readonly address: Address; readonly given: boolean }>();
  private endpoints: Iterable<readonly [string, WorkloadEndpoint]> = [];
  private readonly bell = new Bell();

  constructor(private readonly means: GoneMeans) {}

  /** The kernel has acknowledged these changes. */
  changed({ elements }: TableDelta): void {
    for (const [set, { removed }] of elements) {
      const family = familyOfMembers(set);
      if (family === undefined) continue;
      for (const { key } of removed) {
        const address = addressFromBytes(key.subarray(0, family === 4 ? 4 : 16));
        if (address !== undefined) this.left.set(formatAddress(address), address);
      }
    }
  }

  /** After `changed()` for the same changes. `endpoints`: all that there are now. */
  update(changes: readonly EndpointChange[], endpoints: Iterable<readonly [string, WorkloadEndpoint]>): void {
    this.endpoints = endpoints;
    if (this.left.size === 0 && this.gone.size === 0) return;
    const given = new Set(changes.flatMap(gainedBy));
    for (const [text, { address }] of this.gone) if (given.has(text)) this.gone.set(text, { address, given: true });
    for (const text of changes.flatMap(lostBy)) {
      const address = this.left.get(text);
      if (address !== undefined) this.gone.set(text, { address, given: given.has(text) });
    }
    this.left.clear();
    if (this.gone.size > 0) this.bell.ring();
  }

  /** Resolves when the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.means.wait(LONGEST_MILLISECONDS, AbortSignal.any([signal, this.bell.signal]));
      this.bell.reset();
      const addresses = this.take();
      if (signal.aborted || addresses.length === 0) continue;
      try {
        await this.means.forget(addresses);
      } catch (failure) {
        const reason = failure instanceof Error ? failure.message : String(failure);
        this.means.report(`Connections of pods that are gone are still tracked: ${reason}`);
      }
      await this.means.wait(PACE_MILLISECONDS, signal);
    }
  }

  /** Without those that an endpoint has had all the time: one of two records of the same pod may go, for example. */
  private take(): readonly Address[] {
    const unsure = new Set([...this.gone].flatMap(([text, { given }]) => (given ? [] : text)));
    if (unsure.size > 0) {
      for (const [, endpoint] of this.endpoints) {
        for (const text of textsOf(endpoint)) if (unsure.has(text)) this.gone.delete(text);
      }
    }
    const addresses = [...this.gone.values()].map(({ address }) => address);
    this.gone.clear();
    return addresses;
  }
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
