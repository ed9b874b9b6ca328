/**
 * Takes the addresses of a node's tunnels from IPAM, and gives them back.
 *
 *   take        IPAM, then the record of the node
 *   give back   the record of the node, then IPAM
 *   replace     the new one: IPAM, then the record of the node; then the old one: IPAM
 *
 * So the record never names an address that another may have. After a crash between the two, IPAM has an address that
 * the record lacks: its handle is read at the next start, and the address is used, or given back.
 */
import { type ErrorKind, PluginError } from "../../errors.ts";
import { type Address, formatAddress } from "../../ip/address.ts";
import type { Allocator } from "../../ipam/allocator.ts";
import { DatastoreLocked } from "../../ipam/cluster.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { Node } from "../../model/node.ts";
import {
  recordedTunnelAddress,
  TUNNEL_ADDRESSES,
  TUNNEL_TYPE_ATTRIBUTE,
  type TunnelAddressKind,
  type TunnelKind,
} from "../../model/tunnel-address.ts";
import { decideTunnel, type TunnelPools, tunnelPools } from "./tunnel-pools.ts";

/** Pools may have changed since they were seen, or be full. */
const EXHAUSTED: ReadonlySet<ErrorKind> = new Set(["addresses-exhausted", "pool-unknown"]);

export type OwnTunnels = ReadonlyMap<TunnelKind, string>;

interface TunnelMeans {
  readonly node: string;
  readonly allocator: Pick<Allocator, "assign" | "held" | "releaseAddresses" | "releaseHandle">;
  readonly report: (problem: string) => void;
}

export class TunnelAddresses {
  /** What IPAM has recorded for each tunnel, as read or written last; absent if it must be read again. */
  private readonly held = new Map<TunnelKind, readonly Address[]>();
  /** The tunnels without anything in IPAM, not even an unfinished release. */
  private readonly isReleased = new Set<TunnelKind>();
  /** The tunnels that got no address at the last look: no pool had one, or the datastore is locked. */
  private readonly lacking = new Set<TunnelKind>();

  constructor(private readonly means: TunnelMeans) {}

  /** What IPAM is thought to have is read again before it is relied on. */
  distrust(): void {
    for (const [kind, held] of this.held) if (held.length > 0) this.held.delete(kind);
  }

  /** Also of tunnels that are not needed: something may have failed half way. */
  forget(): void {
    this.held.clear();
    this.isReleased.clear();
  }

  /** Whether a tunnel got no address, because the pools are full or the datastore is locked. */
  get lacksAddress(): boolean {
    return this.lacking.size > 0;
  }

  /** Takes what is needed. Returns the addresses that the record must name; what it must not name is still held. */
  async take({ spec, metadata }: Node, pools: readonly IPPool[]): Promise<OwnTunnels> {
    const own = new Map<TunnelKind, string>();
    for (const tunnel of TUNNEL_ADDRESSES) {
      const recorded = recordedTunnelAddress(spec, tunnel.kind);
      const address = await this.takeOne(tunnel, recorded, { pools, labels: metadata.labels ?? {} });
      if (address !== undefined) own.set(tunnel.kind, formatAddress(address));
    }
    return own;
  }

  /** Whether `giveBack()` may release something. */
  hasToGiveBack(own: OwnTunnels): boolean {
    return TUNNEL_ADDRESSES.some(({ kind }) => {
      const address = own.get(kind);
      return address === undefined ? !this.isReleased.has(kind) : this.othersThan(kind, address).length > 0;
    });
  }

  /** Releases what the record does not name any more. Fails while the datastore is locked. */
  async giveBack(own: OwnTunnels): Promise<void> {
    for (const tunnel of TUNNEL_ADDRESSES) {
      const { kind, handlePrefix } = tunnel;
      const address = own.get(kind);
      if (address !== undefined) await this.releaseOthers(tunnel, address);
      else if (!this.isReleased.has(kind)) await this.release(kind, handlePrefix);
    }
  }

  private async takeOne(
    tunnel: TunnelAddressKind,
    recorded: string | undefined,
    { pools, labels }: { readonly pools: readonly IPPool[]; readonly labels: Readonly<Record<string, string>> },
  ): Promise<Address | undefined> {
    const usable = tunnelPools(tunnel, pools, labels);
    const held = await this.heldBy(tunnel, recorded);
    const decision = decideTunnel(recorded, held, usable);
    this.lacking.delete(tunnel.kind);
    switch (decision.kind) {
      case "give back":
        return undefined;
      case "keep":
        return formatAddress(decision.address) === recorded
          ? decision.address
          : this.takeAgain(tunnel, usable.open, { held, kept: decision.address });
      case "take":
        return (await this.takeNew(tunnel, usable.open, held)) ?? recordedAmong(held, recorded);
    }
  }

  /**
   * The record does not name the address: the node may have been gone until now, and a controller that saw this may be about
   * to release it. It releases only what was not assigned since.
   */
  private takeAgain(
    tunnel: TunnelAddressKind,
    open: TunnelPools["open"],
    { held, kept }: { readonly held: readonly Address[]; readonly kept: Address },
  ): Promise<Address | undefined> {
    // A disabled pool is not open, and its address is kept nevertheless.
    const others = held.filter((address) => address !== kept);
    return this.takeNew(tunnel, open.length > 0 ? open : [[]], others);
  }

  /** `undefined` if there is none: the other tunnels and the addresses of the node do not wait for it. */
  private async takeNew(
    tunnel: TunnelAddressKind,
    open: TunnelPools["open"],
    held: readonly Address[],
  ): Promise<Address | undefined> {
    let refusal = "";
    for (const pools of open) {
      try {
        return await this.assign(tunnel, pools, held);
      } catch (failure) {
        // While the datastore is locked the node keeps the addresses that it has.
        const isLocked = failure instanceof DatastoreLocked;
        if (!isLocked && !(failure instanceof PluginError && EXHAUSTED.has(failure.kind))) throw failure;
        refusal = failure.message;
        if (isLocked) break;
      }
    }
    this.lacking.add(tunnel.kind);
    this.means.report(`The ${tunnel.title} of this node gets no address: ${refusal}`);
    return undefined;
  }

  /** Read again if the record says something else: it may have been written by others, or restored. */
  private async heldBy(
    { kind, handlePrefix }: TunnelAddressKind,
    recorded: string | undefined,
  ): Promise<readonly Address[]> {
    const { node, allocator } = this.means;
    const known = this.held.get(kind);
    const first = known?.[0];
    if (known !== undefined && (first === undefined ? undefined : formatAddress(first)) === recorded) return known;
    const likely = recorded === undefined ? [] : [recorded];
    const held = (await allocator.held({ handle: `${handlePrefix}${node}`, node, likely })).map(
      ({ address }) => address,
    );
    this.held.set(kind, held);
    if (held.length > 0) this.isReleased.delete(kind);
    return held;
  }

  private async assign(
    tunnel: TunnelAddressKind,
    pools: readonly string[],
    replaced: readonly Address[],
  ): Promise<Address | undefined> {
    const { node, allocator } = this.means;
    const { kind, family, handlePrefix, type } = tunnel;
    this.held.delete(kind);
    this.isReleased.delete(kind);
    const { addresses } = await allocator.assign({
      handle: `${handlePrefix}${node}`,
      node,
      attributes: { [TUNNEL_TYPE_ATTRIBUTE]: type },
      ...(replaced.length === 0 ? {} : { replaced }),
      renewsHeld: true,
      intendedUse: "Tunnel",
      addressRequests: [{ kind: "automatic", family, pools }],
    });
    const taken = addresses.map(({ address }) => address);
    this.held.set(kind, [...taken, ...replaced]);
    return taken[0];
  }

  private async releaseOthers({ kind, handlePrefix }: TunnelAddressKind, kept: string): Promise<void> {
    const others = this.othersThan(kind, kept);
    if (others.length === 0) return;
    const held = this.held.get(kind) ?? [];
    const handle = `${handlePrefix}${this.means.node}`;
    this.held.delete(kind);
    await this.means.allocator.releaseAddresses(others.map((address) => ({ address, handle })));
    this.held.set(
      kind,
      held.filter((address) => !others.includes(address)),
    );
  }

  private othersThan(kind: TunnelKind, kept: string): readonly Address[] {
    return (this.held.get(kind) ?? []).filter((address) => formatAddress(address) !== kept);
  }

  private async release(kind: TunnelKind, handlePrefix: string): Promise<void> {
    const { node, allocator } = this.means;
    this.held.delete(kind);
    await allocator.releaseHandle({ handle: `${handlePrefix}${node}`, node });
    this.held.set(kind, []);
    this.isReleased.add(kind);
  }
}

function recordedAmong(held: readonly Address[], recorded: string | undefined): Address | undefined {
  return held.find((address) => formatAddress(address) === recorded);
}
