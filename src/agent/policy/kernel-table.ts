/** The policy table in the kernel: replaced as a whole, or changed by what differs. */
import { POLICY_TABLE } from "../../firewall/policy-table.ts";
import { portOf } from "../../linux/netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { commit, type Refusal, readGeneration, tryCommit } from "../../linux/nftables/commit.ts";
import { type Noticed, TableMonitor } from "../../linux/nftables/monitor.ts";
import { listRuleCounts } from "../../linux/nftables/read.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import { tableRemoval } from "../../linux/nftables/ruleset.ts";
import { withDecisions } from "../../policy/render/rejected.ts";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import { type Batch, tableBatches, wholeTable } from "../../policy/table/table-changes.ts";
import { carryCounts, DepartedCounts } from "./carried-counts.ts";
import { changesOfFormer, TABLE_COMMENT } from "./former-table.ts";
import { differenceOfElements, findDifference } from "./table-difference.ts";

export interface KernelTable {
  /**
   * Changes the table that is there, of a former agent or edited by another program, to this one. Returns what it changed;
   * `undefined` if the table must be replaced.
   */
  adopt(table: DesiredTable): TableDelta | undefined;
  /** The former table is in effect until the new one is. Throws if the kernel refuses it. */
  replace(table: DesiredTable): void;
  /**
   * In one batch or a few, after each of which the table judges packets as before or as wanted. If the kernel refuses a
   * step, its content is not what was expected: returns why.
   */
  change(table: DesiredTable, delta: TableDelta): Refusal | undefined;
  /** From then on all packets pass. */
  remove(): void;
  /** What other programs changed in the table since the last call. */
  notice(): Noticed;
  /** What each rule has counted since the agent began, and before if it took over the table: a sum never falls. */
  counts(): readonly RuleCount[];
  /**
   * How the kernel's table differs from this one; `undefined` if it does not. Reads all of it, but of the elements only
   * those of the given sets.
   */
  difference(table: DesiredTable, sets?: readonly string[]): string | undefined;
  /** Reads nothing but the elements of these sets. */
  elementDifference(table: DesiredTable, sets: readonly string[]): string | undefined;
  close(): void;
}

export function openKernelTable(kernel: SocketOpener): KernelTable {
  return new NetfilterTable(kernel);
}

/** More chains than this are read with the whole table. */
const MOST_READ_ALONE = 8;

class NetfilterTable implements KernelTable {
  private monitor: TableMonitor | undefined;
  /** Something was changed just before the monitor began to listen: perhaps this table. */
  private mayHaveMissed = false;
  /** Of rules that are gone. */
  private readonly departed = new DepartedCounts();

  private readonly socket: NetlinkSocket;

  constructor(private readonly kernel: SocketOpener) {
    this.socket = kernel.openSocket("netfilter");
  }

  adopt(table: DesiredTable): TableDelta | undefined {
    const delta = changesOfFormer(this.socket, table);
    if (delta === undefined || this.change(table, delta) !== undefined) return undefined;
    this.stopListening();
    this.monitor = new TableMonitor(this.kernel, POLICY_TABLE, portOf(this.socket));
    this.mayHaveMissed = true;
    return delta;
  }

  replace(table: DesiredTable): void {
    // The messages about all that follows would not fit into its buffer.
    this.stopListening();
    const generation = readGeneration(this.socket);
    const { changes, left } = carryCounts(wholeTable(POLICY_TABLE, table, TABLE_COMMENT), this.readCounts());
    commit(this.socket, changes);
    this.departed.add(left);
    this.monitor = new TableMonitor(this.kernel, POLICY_TABLE, portOf(this.socket));
    this.mayHaveMissed = readGeneration(this.socket) !== generation + 1;
  }

  change(table: DesiredTable, delta: TableDelta): Refusal | undefined {
    for (const batch of tableBatches(POLICY_TABLE, table, delta)) {
      const { changes, left } = carryCounts(batch, this.countsOfOld(batch));
      const [refusal] = tryCommit(this.socket, changes);
      if (refusal !== undefined) return refusal;
      this.departed.add(left);
    }
    return undefined;
  }

  counts(): readonly RuleCount[] {
    return [...withDecisions(listRuleCounts(this.socket, POLICY_TABLE)), ...this.departed.all()];
  }

  /** Of the rules that the batch removes. */
  private countsOfOld(batch: Batch): readonly RuleCount[] {
    const old = batch.flatMap((change) => (change.kind === "flush-chain" ? [change.chain] : []));
    if (old.length > MOST_READ_ALONE) return this.readCounts(new Set(old));
    return old.flatMap((chain) => this.readCounts(new Set([chain]), chain));
  }

  /** What cannot be read is not worth a policy that is not enforced. */
  private readCounts(wanted?: ReadonlySet<string>, only?: string): readonly RuleCount[] {
    try {
      const counts = withDecisions(listRuleCounts(this.socket, POLICY_TABLE, only));
      return wanted === undefined ? counts : counts.filter(({ chain }) => wanted.has(chain));
    } catch {
      return [];
    }
  }

  remove(): void {
    this.stopListening();
    commit(this.socket, tableRemoval(POLICY_TABLE));
  }

  notice(): Noticed {
    const noticed = this.monitor?.read() ?? { kind: "nothing" };
    if (noticed.kind !== "nothing" || !this.mayHaveMissed) return noticed;
    this.mayHaveMissed = false;
    return { kind: "unknown" };
  }

  difference(table: DesiredTable, sets?: readonly string[]): string | undefined {
    return findDifference(this.socket, table, sets);
  }

  elementDifference(table: DesiredTable, sets: readonly string[]): string | undefined {
    return differenceOfElements(this.socket, table, sets);
  }

  close(): void {
    this.stopListening();
    closeNetlinkSocket(this.socket);
  }

  private stopListening(): void {
    this.monitor?.close();
    this.monitor = undefined;
  }
}
