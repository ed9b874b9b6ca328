/**
 * The addresses of this node's workloads, each sent to the chain of its egress policies, for the hook at which the interface
 * of the sender is not known: only on a host with IPVS. If several endpoints have one address, the one with the lowest key has it.
 */
import { type Address, addressBytes, formatAddress } from "../../ip/address.ts";
import { SOURCE_MAPS, SOURCES } from "../render/base-chains.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

interface Source {
  readonly addresses: readonly Address[];
  readonly interfaceName: string;
}

export class WorkloadSources {
  private readonly sources = new Map<string, Source>();
  /** Address -> the keys of the endpoints that have it. */
  private readonly keysOf = new Map<string, Set<string>>();
  /** Interface -> the keys of the endpoints that claim it. */
  private readonly keysAt = new Map<string, Set<string>>();
  /** Interface -> the chain of its egress policies. */
  private readonly chains = new Map<string, string>();

  private isNeeded = false;

  constructor(private readonly builder: TableBuilder) {}

  /** Whether there is such a hook. */
  setNeeded(isNeeded: boolean): void {
    this.isNeeded = isNeeded;
    for (const map of SOURCE_MAPS) {
      if (isNeeded) this.builder.createSet(map);
      else this.builder.deleteSet(map.name);
    }
    if (!isNeeded) return;
    for (const { addresses } of this.sources.values()) for (const address of addresses) this.write(address);
  }

  put(key: string, source: Source): void {
    this.delete(key);
    this.sources.set(key, source);
    addTo(this.keysAt, source.interfaceName, key);
    for (const address of source.addresses) {
      addTo(this.keysOf, formatAddress(address), key);
      this.write(address);
    }
  }

  delete(key: string): void {
    const before = this.sources.get(key);
    if (before === undefined) return;
    this.sources.delete(key);
    removeFrom(this.keysAt, before.interfaceName, key);
    for (const address of before.addresses) {
      removeFrom(this.keysOf, formatAddress(address), key);
      this.write(address);
    }
  }

  /** `undefined`: packets of the interface go to no chain. */
  send(interfaceName: string, chain: string | undefined): void {
    if (chain === undefined) this.chains.delete(interfaceName);
    else this.chains.set(interfaceName, chain);
    for (const key of this.keysAt.get(interfaceName) ?? []) {
      for (const address of this.sources.get(key)?.addresses ?? []) this.write(address);
    }
  }

  private write(address: Address): void {
    if (!this.isNeeded) return;
    const text = formatAddress(address);
    const [first = ""] = [...(this.keysOf.get(text) ?? [])].sort();
    const chain = this.chains.get(this.sources.get(first)?.interfaceName ?? "");
    const set = SOURCES[address.family];
    if (chain === undefined) this.builder.deleteElement(set, text);
    else this.builder.putElement(set, text, { key: addressBytes(address), data: { kind: "goto", chain } });
  }
}
