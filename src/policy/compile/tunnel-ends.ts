/**
 * Between which hosts tunnels, and probes inside of them, may pass host endpoints: the addresses of all nodes, and of their
 * tunnels, as long as a pool needs a tunnel. A node that joins or leaves changes elements only.
 */
import { type Address, addressBytes, type Family, formatAddress, parseAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import type { TunnelKind } from "../../linux/nftables/tunnel-match.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";
import type { PolicyChanges } from "../inputs.ts";
import { probedSet, tunnelEndSet } from "../render/tunnel-packets.ts";
import type { TableBuilder } from "../table/table-builder.ts";

const FAMILIES = [4, 6] as const;
/** The sets, and which addresses of a node belong to them. */
const SETS = [
  { nameOf: tunnelEndSet, of: "hosts" },
  { nameOf: probedSet, of: "tunnels" },
] as const;

interface NodeEnds {
  readonly hosts: readonly Address[];
  readonly tunnels: readonly Address[];
}

const NO_ENDS: NodeEnds = { hosts: [], tunnels: [] };

export class TunnelEnds {
  /** The tunnels that each pool needs. */
  private readonly pools = new Map<string, readonly TunnelKind[]>();
  private readonly nodes = new Map<string, NodeEnds>();
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
      const ends = change.kind === "put" ? endsOf(change.value) : NO_ENDS;
      if (Bun.deepEquals(this.nodes.get(change.key) ?? NO_ENDS, ends)) continue;
      isMoved = true;
      if (change.kind === "delete") this.nodes.delete(change.key);
      else this.nodes.set(change.key, ends);
    }
    if (isMoved && this.hasSets) this.fillSets();
    return pools.length > 0;
  }

  /** There are sets only while chains use them. */
  write(isUsed: boolean): void {
    if (isUsed === this.hasSets) return;
    this.hasSets = isUsed;
    for (const { nameOf } of SETS) {
      for (const family of FAMILIES) {
        if (!isUsed) this.builder.deleteSet(nameOf(family));
        else this.builder.createSet({ name: nameOf(family), key: [family === 4 ? "ipv4_addr" : "ipv6_addr"] });
      }
    }
    if (isUsed) this.fillSets();
  }

  private fillSets(): void {
    for (const { nameOf, of } of SETS) {
      const all = this.nodes.values().flatMap((ends) => ends[of]);
      const wanted = new Map(all.map((address) => [formatAddress(address), address]));
      for (const family of FAMILIES) this.fillSet(nameOf(family), family, wanted);
    }
  }

  private fillSet(name: string, family: Family, wanted: ReadonlyMap<string, Address>): void {
    const present = [...(this.builder.sets.get(name)?.elements.keys() ?? [])];
    for (const text of present) if (!wanted.has(text)) this.builder.deleteElement(name, text);
    for (const [text, address] of wanted) {
      if (address.family === family && !this.builder.hasElement(name, text))
        this.builder.putElement(name, text, { key: addressBytes(address) });
    }
  }
}

function tunnelsOf({ spec: { vxlanMode, ipipMode } }: IPPool): readonly TunnelKind[] {
  return [...(vxlanMode === "Never" ? [] : (["vxlan"] as const)), ...(ipipMode === "Never" ? [] : (["ipip"] as const))];
}

function endsOf({ spec: { bgp = {}, ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr } }: Node): NodeEnds {
  return {
    hosts: addressesIn([bgp.ipv4Address, bgp.ipv6Address]),
    tunnels: addressesIn([ipv4VXLANTunnelAddr, ipv6VXLANTunnelAddr]),
  };
}

function addressesIn(texts: readonly (string | undefined)[]): readonly Address[] {
  return texts.flatMap((text = "") => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? []);
}
