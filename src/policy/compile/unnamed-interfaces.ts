/**
 * Workload endpoints of this node that do not name their interface: another networking plugin has connected their pods.
 * The interface is the one that the kernel's route to an address of the pod leads to, if it has a prefix of workloads.
 *
 * A plugin may give the address of a pod that is being deleted to the next one: the pod that was created last has it.
 */
import { formatAddress } from "../../ip/address.ts";
import { hasPrefix } from "../../model/interface-prefix.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { Entity } from "./entity.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

interface Unnamed {
  readonly endpoint: WorkloadEndpoint;
  readonly entity: Entity;
  /** None if the pod has finished. */
  readonly addresses: readonly string[];
}

/** An endpoint whose interface is known now. */
export interface PlacedEndpoint extends Pick<Unnamed, "endpoint" | "entity"> {
  readonly key: string;
  /** `undefined`: it is not known any more. */
  readonly interfaceName: string | undefined;
}

/** A pod that is connected by an interface that no policy is enforced at. */
export interface UnplacedEndpoint {
  readonly endpoint: WorkloadEndpoint;
  readonly addresses: readonly string[];
  /** Where packets to it leave the host; `undefined` if nowhere. */
  readonly link: string | undefined;
}

export class UnnamedInterfaces {
  private readonly endpoints = new Map<string, Unnamed>();
  private readonly claims = new Map<string, Set<string>>();
  private readonly placed = new Map<string, string>();
  private readonly touched = new Set<string>();
  private prefixes: readonly string[] = [];
  /** Address -> the name of the link that packets to it leave by. */
  private links: ReadonlyMap<string, string> = new Map();

  /** Whose links must be known. */
  get addresses(): ReadonlySet<string> {
    return new Set(this.claims.keys());
  }

  put(key: string, endpoint: WorkloadEndpoint, entity: Entity): void {
    this.forget(key);
    const addresses = entity.addresses.map(formatAddress);
    this.endpoints.set(key, { endpoint, entity, addresses });
    for (const address of addresses) {
      addTo(this.claims, address, key);
      this.touchClaimants(address);
    }
    this.touched.add(key);
    // Its labels may be others: it is placed again.
    this.placed.delete(key);
  }

  delete(key: string): void {
    this.forget(key);
    this.endpoints.delete(key);
    this.placed.delete(key);
    this.touched.delete(key);
  }

  setPrefixes(prefixes: readonly string[]): void {
    if (Bun.deepEquals(prefixes, this.prefixes)) return;
    this.prefixes = prefixes;
    for (const key of this.endpoints.keys()) this.touched.add(key);
  }

  setLinks(links: ReadonlyMap<string, string>): void {
    const before = this.links;
    if (links === before) return;
    this.links = links;
    for (const address of this.claims.keys()) {
      if (before.get(address) !== links.get(address)) this.touchClaimants(address);
    }
  }

  /** Those whose interface is another than at the last call. */
  takeChanged(): readonly PlacedEndpoint[] {
    const changed: PlacedEndpoint[] = [];
    for (const key of this.touched) {
      const unnamed = this.endpoints.get(key);
      if (unnamed === undefined) continue;
      const interfaceName = this.interfaceOf(key, unnamed);
      if (interfaceName !== undefined && interfaceName === this.placed.get(key)) continue;
      if (interfaceName === undefined) this.placed.delete(key);
      else this.placed.set(key, interfaceName);
      changed.push({ key, endpoint: unnamed.endpoint, entity: unnamed.entity, interfaceName });
    }
    this.touched.clear();
    return changed;
  }

  get unplaced(): readonly UnplacedEndpoint[] {
    return [...this.endpoints].flatMap(([key, { endpoint, addresses }]) => {
      const own = addresses.filter((address) => this.isNewest(key, address));
      if (this.placed.has(key) || own.length === 0) return [];
      const link = own.map((address) => this.links.get(address)).find((name) => name !== undefined);
      return [{ endpoint, addresses: own, link }];
    });
  }

  private interfaceOf(key: string, { addresses }: Unnamed): string | undefined {
    for (const address of addresses) {
      const link = this.links.get(address);
      if (link !== undefined && hasPrefix(link, this.prefixes) && this.isNewest(key, address)) return link;
    }
    return undefined;
  }

  private isNewest(key: string, address: string): boolean {
    const own = this.ageOf(key);
    for (const other of this.claims.get(address) ?? []) if (this.ageOf(other) > own) return false;
    return true;
  }

  /** Later is greater; of equal times the key decides. */
  private ageOf(key: string): string {
    return `${this.endpoints.get(key)?.endpoint.metadata.creationTimestamp ?? ""} ${key}`;
  }

  private forget(key: string): void {
    for (const address of this.endpoints.get(key)?.addresses ?? []) {
      removeFrom(this.claims, address, key);
      this.touchClaimants(address);
    }
  }

  private touchClaimants(address: string): void {
    for (const key of this.claims.get(address) ?? []) this.touched.add(key);
  }
}
