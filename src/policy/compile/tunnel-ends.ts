/**
 * Between which hosts tunnels may pass host endpoints: the addresses of all nodes, as long as a pool needs a tunnel. A node
 * that joins or leaves changes elements only.
 */
import { type Address, addressBytes, formatAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import type { TunnelKind } from "../../linux/nftables/tunnel-match.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";
import type { PolicyChanges } from "../inputs.ts";
import { tunnelEndSet } from "../render/tunnel-packets.ts";
import type { TableBuilder } from "../table/table-builder.ts";

const FAMILIES = [4, 6] as const;

export class TunnelEnds {
  /** The tunnels that each pool needs. */
  private readonly pools = new Map<string, readonly TunnelKind[]>();
  private readonly nodes = new Map<string, readonly Address[]>();
  private hasSets = false;

  constructor(private readonly builder: TableBuilder) {}

  get kinds(): ReadonlySet<TunnelKind> {
    return new Set([...this.pools.values()].flat());
  }

  /** What can no longer be read stays as it was. Returns whether the kinds may differ. */
  update({ pools = [], nodes = [] }: Pick<PolicyChanges, "pools" | "nodes">): boolean {
    for (const change of pools) {
      if (change.kind === "put") this.pools.set(change.key, tunnelsOf(change.value));
      else if (change.kind === "delete") this.pools.delete(change.key);
    }
    let isMoved = false;
    for (const change of nodes) {
      if (change.kind === "unreadable") continue;
      const addresses = change.kind === "put" ? addressesOf(change.value) : [];
      if (Bun.deepEquals(this.nodes.get(change.key) ?? [], addresses)) continue;
      isMoved = true;
      if (addresses.length === 0) this.nodes.delete(change.key);
      else this.nodes.set(change.key, addresses);
    }
    if (isMoved && this.hasSets) this.fillSets();
    return pools.length > 0;
  }

  /** There are sets only while chains use them. */
  write(isUsed: boolean): void {
    if (isUsed === this.hasSets) return;
    this.hasSets = isUsed;
    for (const family of FAMILIES) {
      if (!isUsed) this.builder.deleteSet(tunnelEndSet(family));
      else this.builder.createSet({ name: tunnelEndSet(family), key: [family === 4 ? "ipv4_addr" : "ipv6_addr"] });
    }
    if (isUsed) this.fillSets();
  }

  private fillSets(): void {
    const wanted = new Map([...this.nodes.values()].flat().map((address) => [formatAddress(address), address]));
    for (const family of FAMILIES) {
      const name = tunnelEndSet(family);
      const present = [...(this.builder.sets.get(name)?.elements.keys() ?? [])];
      for (const text of present) if (!wanted.has(text)) this.builder.deleteElement(name, text);
      for (const [text, address] of wanted) {
        if (address.family === family && !this.builder.hasElement(name, text))
          this.builder.putElement(name, text, { key: addressBytes(address) });
      }
    }
  }
}

function tunnelsOf({ spec: { vxlanMode, ipipMode } }: IPPool): readonly TunnelKind[] {
  return [...(vxlanMode === "Never" ? [] : (["vxlan"] as const)), ...(ipipMode === "Never" ? [] : (["ipip"] as const))];
}

function addressesOf({ spec: { bgp = {} } }: Node): readonly Address[] {
  const texts = [bgp.ipv4Address, bgp.ipv6Address].filter((text) => text !== undefined);
  return texts.flatMap((text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}
