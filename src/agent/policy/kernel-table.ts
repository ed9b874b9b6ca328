/** The policy table in the kernel: replaced as a whole, or changed by what differs. Each in one batch, all or nothing. */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { identity } from "../../identity.ts";
import { closeNetlinkSocket, type NetlinkSocket, openNetlinkSocket } from "../../linux/netlink-socket.ts";
import { type Refusal, tryCommit } from "../../linux/nftables/commit.ts";
import type { NftChange } from "../../linux/nftables/ruleset.ts";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import { tableChanges, wholeTable } from "../../policy/table/table-changes.ts";

const COMMENT = `written by ${identity.nodeAgent}, which reverts other changes`;

export interface KernelTable {
  /** The former table is in effect until the new one is. Throws if the kernel refuses it. */
  replace(table: DesiredTable): void;
  /** Returns why nothing was changed, if the kernel refused a step: then its content is not what was expected. */
  change(table: DesiredTable, delta: TableDelta): Refusal | undefined;
  /** From then on all packets pass. */
  remove(): void;
  close(): void;
}

/** Of the network namespace of this process. */
export function openKernelTable(): KernelTable {
  return new NetfilterTable(openNetlinkSocket("netfilter"));
}

class NetfilterTable implements KernelTable {
  constructor(private readonly socket: NetlinkSocket) {}

  replace(table: DesiredTable): void {
    this.commit(wholeTable(POLICY_TABLE, table, COMMENT));
  }

  change(table: DesiredTable, delta: TableDelta): Refusal | undefined {
    const [refusal] = tryCommit(this.socket, tableChanges(POLICY_TABLE, table, delta));
    return refusal;
  }

  remove(): void {
    // The first step makes the second succeed if there is no table.
    this.commit([
      { kind: "add-table", table: POLICY_TABLE },
      { kind: "delete-table", table: POLICY_TABLE },
    ]);
  }

  close(): void {
    closeNetlinkSocket(this.socket);
  }

  private commit(changes: readonly NftChange[]): void {
    const [refusal] = tryCommit(this.socket, changes);
    if (refusal !== undefined) throw refusal.error;
  }
}
