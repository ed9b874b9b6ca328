/**
 * What the kernel of the measured node must hold after a change: computed by the product's own compiler from the few records
 * that concern this node, and looked for in the kernel by name, so that looking costs the same in a cluster of any size.
 */

import type { StoredRecord } from "../../sim/scale/cluster-records.ts";
import { holdEntry } from "../../src/datastore/replica/kind-snapshot.ts";
import type { RecordChange } from "../../src/datastore/replica/subscription.ts";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { parseAddress } from "../../src/ip/address.ts";
import type { NetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { findElements, findTable, listRules } from "../../src/linux/nftables/read.ts";
import { routeTowards } from "../../src/linux/rtnetlink/route-lookup.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import { POLICY_KINDS, type PolicyChanges } from "../../src/policy/inputs.ts";
import { TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";

export interface ScaleSockets {
  readonly netfilter: NetlinkSocket;
  readonly route: NetlinkSocket;
}

/** Whether the kernel has it. Changes nothing. */
export type IsThere = () => boolean;

export class ScaleExpectation {
  private readonly compiler: PolicyCompiler;

  constructor(
    node: string,
    private readonly sockets: ScaleSockets,
  ) {
    this.compiler = new PolicyCompiler({ node });
  }

  /** The records that concern this node. */
  load(records: readonly StoredRecord[]): void {
    this.compiler.update(changesOf(records));
    this.compiler.takeDelta();
  }

  /** The whole table is written in one batch. */
  isLoaded(): boolean {
    const { netfilter } = this.sockets;
    const [some] = this.compiler.table.sets.get(TO_WORKLOADS)?.elements.values() ?? [];
    if (some === undefined) throw new Error("Nothing is expected of the node");
    return (
      findTable(netfilter, POLICY_TABLE) !== undefined &&
      findElements(netfilter, POLICY_TABLE, TO_WORKLOADS, [some.key])[0] !== undefined
    );
  }

  /** Call it before the records are written. Throws if they change nothing here. */
  after(records: readonly StoredRecord[]): IsThere {
    const { netfilter } = this.sockets;
    const handlesOf = (chain: string) => listRules(netfilter, POLICY_TABLE, chain).map(({ handle }) => handle);
    this.compiler.update(changesOf(records));
    const { chains, elements } = this.compiler.takeDelta();
    const changed = Array.from(chains.keys(), (chain) => ({ chain, before: handlesOf(chain) }));
    const added = Array.from(elements, ([set, each]) => ({ set, keys: each.added.map(({ key }) => key) })).filter(
      ({ keys }) => keys.length > 0,
    );
    if (changed.length + added.length === 0) throw new Error("The change changes nothing on this node");
    return () =>
      added.every(({ set, keys }) => !findElements(netfilter, POLICY_TABLE, set, keys).includes(undefined)) &&
      changed.every(({ chain, before }) => !Bun.deepEquals(handlesOf(chain), before));
  }

  /** Whether packets to the address leave by a tunnel, as those to pods of other nodes. */
  isRouted(address: string, uplink: number): boolean {
    const parsed = parseAddress(address);
    const link = parsed && routeTowards(this.sockets.route, parsed)?.linkIndex;
    return link !== undefined && link !== uplink;
  }
}

/** The records as changes of kinds that the compiler knows; others are left out. */
function changesOf(records: readonly StoredRecord[]): PolicyChanges {
  const changes = Object.fromEntries(
    Object.entries(POLICY_KINDS).map(([kind, source]) => [
      kind,
      records
        .filter(({ key }) => key.startsWith(source.prefix))
        .map(({ key, value }): RecordChange<unknown> => {
          const held = holdEntry<unknown>({ key, value, revision: "1" }, source, undefined);
          if (held?.kind !== "readable") throw new Error(`Cannot read the record at ${key}`);
          return { kind: "put", key, value: held.value, previous: undefined };
        }),
    ]),
  );
  return changes as unknown as PolicyChanges;
}
