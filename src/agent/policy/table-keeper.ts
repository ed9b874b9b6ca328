/**
 * Keeps the kernel's policy table equal to what the resources say.
 *
 *   changes of resources -> compile -> what differs -> batches -> acknowledged
 *
 * If no policy is left because the datastore has lost its records, the rules stay for the containers that run: nobody has
 * taken the policies back. They go with these containers, or are replaced when there is a policy again.
 *
 * If the kernel refuses a change, its content is not what was expected: the whole table is written again. If that fails
 * too, the former rules stay, and the caller gets the error.
 */
import { isKernelError } from "../../linux/kernel-error.ts";
import type { AffectedNamespaces, PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { ReportingSidecars } from "../../policy/compile/sidecar-interfaces.ts";
import type { HostInterface } from "../../policy/host-interface.ts";
import type { PolicyChanges } from "../../policy/inputs.ts";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import type { KernelTable } from "./kernel-table.ts";

export interface TableMeans {
  readonly compiler: PolicyCompiler;
  readonly kernel: KernelTable;
  /** Whether there must be a table. Without it all packets pass. */
  readonly isWanted: () => boolean;
  /** Whether containers run on this host that are not among the endpoints. */
  readonly hasUnknownContainers?: () => boolean;
  readonly report: (message: string) => void;
  /** Called when changed resources are compiled, before the kernel gets them: adds what else they depend on. */
  readonly compiled?: () => void;
  /** The kernel has acknowledged these changes. */
  readonly changed?: (delta: TableDelta) => void;
  /** The table of a former agent has become this one by these changes. */
  readonly adopted?: (delta: TableDelta, table: DesiredTable) => void;
}

export type Joining = (affected: () => AffectedNamespaces) => PolicyChanges | undefined;

/**
 * Of one look at the table. The kernel searches a set by its name among all: 10,000 sets take seconds together, for which
 * the changes of all tenants would wait.
 */
const MOST_SETS_COMPARED = 500;

export class TableKeeper {
  /** Of the table in the kernel. At the start a former agent's table may be there. */
  private state: "unknown" | "present" | "absent" = "unknown";
  /** The rules stay although no policy is known: with the state "unknown", since they are of before. */
  private isKept = false;
  /** The table in the kernel was written when containers of this host were known. */
  private hadEndpoints = false;
  /** The table could not be compared when it should have been. */
  private isDoubtful = false;
  /** Sets whose elements are compared at the next looks. */
  private uncompared: ReadonlySet<string> = new Set();

  constructor(private readonly means: TableMeans) {}

  /** Otherwise all packets pass, or the table of a former agent decides. */
  get hasTable(): boolean {
    return this.state === "present";
  }

  /** The kernel has the rules of the compiler, or none since there need not be any. */
  get isSettled(): boolean {
    return this.state !== "unknown";
  }

  /** No policy is known, but if a former agent has written rules, they stay. */
  get keepsFormer(): boolean {
    return this.isKept;
  }

  /**
   * The first call has everything. Returns after the kernel has acknowledged the change. `joining` is asked which changes
   * must take effect together with those that affect these namespaces, until there are no more.
   */
  update(changes: PolicyChanges, joining: Joining = () => undefined): void {
    const { compiler, compiled, isWanted } = this.means;
    const affected = () => (isWanted() ? compiler.affectedNamespaces : "all");
    for (let more: PolicyChanges | undefined = changes; more !== undefined; more = joining(affected)) {
      compiler.update(more);
      compiled?.();
    }
    this.write();
  }

  /** Interfaces of the host, or their addresses, have changed. */
  updateInterfaces(interfaces: readonly HostInterface[]): void {
    this.means.compiler.setHostInterfaces(interfaces);
    this.write();
  }

  /** Pods that other plugins have connected are reached by other links. Returns the keys of endpoints that moved. */
  updateWorkloadLinks(links: ReadonlyMap<string, string>): readonly string[] {
    const moved = this.means.compiler.setWorkloadLinks(links);
    this.write();
    return moved;
  }

  /** The host reaches others by other links. */
  updateUplinks(names: readonly string[]): void {
    if (this.means.compiler.setUplinks(names) === "changed") this.write();
  }

  /** The host has IPVS now, or has it no more. Before the first update there is nothing to write: `compiled` says it then. */
  updateIpvs(hasIpvs: boolean): void {
    if (this.state === "present" && this.means.compiler.setIpvs(hasIpvs) === "changed") this.write();
  }

  /** Other sidecars decide about requests. */
  updateSidecars(reporting: ReportingSidecars): void {
    if (this.means.compiler.setSidecars(reporting) === "changed") this.write();
  }

  /** Rules can have labels that they could not have before. */
  renewLabels(): void {
    this.means.compiler.renewLabels();
    this.write();
  }

  /** Undoes what other programs changed in the table. */
  revertForeignChanges(): void {
    if (this.isKept) this.write();
    if (this.state !== "present") return;
    const noticed = this.means.kernel.notice();
    if (noticed.kind === "changed") this.repair(`it was changed by ${noticed.by}`);
    else if (noticed.kind === "unknown" || this.isDoubtful) this.compare();
    else if (this.uncompared.size > 0) this.compareNext("elements");
  }

  /** Reads the whole table, and writes it again if it differs. The sets of a large one are compared over several looks. */
  compare(): void {
    if (this.state !== "present") return;
    // Those that are left of a comparison first: else new ones could keep it from its end.
    this.uncompared = this.uncompared.union(new Set(this.means.compiler.table.sets.keys()));
    this.compareNext("everything");
  }

  /** Everything else is compared at the first look only. */
  private compareNext(part: "everything" | "elements"): void {
    const { kernel, compiler } = this.means;
    const { table } = compiler;
    const left = [...this.uncompared].filter((name) => table.sets.has(name));
    const names = left.slice(0, MOST_SETS_COMPARED);
    const difference = this.findDifference(() =>
      part === "everything" ? kernel.difference(table, names) : kernel.elementDifference(table, names),
    );
    this.uncompared = new Set(difference === undefined ? left.slice(MOST_SETS_COMPARED) : []);
    if (difference !== undefined) this.repair(difference);
  }

  /** While others change rules all the time, the table cannot be read: then it is compared at the next occasion. */
  private findDifference(compare: () => string | undefined): string | undefined {
    try {
      const difference = compare();
      this.isDoubtful = false;
      return difference;
    } catch (failure) {
      if (!isBusy(failure)) throw failure;
      this.isDoubtful = true;
      return undefined;
    }
  }

  private write(): void {
    const { compiler, kernel, isWanted } = this.means;
    const delta = compiler.takeDelta();
    this.isKept = !isWanted() && this.mustKeep();
    if (this.isKept) {
      this.state = "unknown";
    } else if (isWanted()) {
      if (this.state === "present") this.change(delta);
      else if (this.state === "absent") this.replace();
      else this.takeOver();
      this.hadEndpoints = compiler.localEndpoints.size > 0;
    } else if (this.state !== "absent") {
      kernel.remove();
      this.state = "absent";
    }
  }

  /** Policies that were deleted while the agent ran, and not together with all containers of the host, are gone. */
  private mustKeep(): boolean {
    const { compiler, hasUnknownContainers } = this.means;
    const isLost = this.hadEndpoints && compiler.localEndpoints.size === 0;
    if (this.state === "absent" || (this.state === "present" && !isLost)) return false;
    return hasUnknownContainers?.() ?? false;
  }

  private takeOver(): void {
    const adopted = this.adopt();
    if (adopted === undefined) this.replace();
    else this.means.adopted?.(adopted, this.means.compiler.table);
  }

  private repair(reason: string): void {
    this.means.report(`Writing the whole policy table again: ${reason}`);
    const { kernel, compiler } = this.means;
    if (this.adopt() === undefined || this.findDifference(() => kernel.difference(compiler.table)) !== undefined)
      this.replace();
  }

  private change(delta: TableDelta): void {
    const { compiler, kernel } = this.means;
    const refusal = kernel.change(compiler.table, delta);
    if (refusal !== undefined) this.repair(refusal.error.message);
    this.means.changed?.(delta);
  }

  /** Takes over the table that is in the kernel, without losing a packet. Returns `undefined` if it must be replaced. */
  private adopt(): TableDelta | undefined {
    try {
      const delta = this.means.kernel.adopt(this.means.compiler.table);
      if (delta !== undefined) this.state = "present";
      return delta;
    } catch (failure) {
      if (isBusy(failure)) return undefined;
      throw failure;
    }
  }

  private replace(): void {
    this.means.kernel.replace(this.means.compiler.table);
    this.state = "present";
  }
}

/** The ruleset changed whenever it was read. */
function isBusy(failure: unknown): boolean {
  return isKernelError(failure, "EINTR", "EAGAIN");
}
