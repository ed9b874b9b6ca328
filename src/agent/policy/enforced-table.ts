/**
 * The policy table of this host, with everything that it is made of: resources, and what the host itself tells.
 *
 *   resources of the datastore ──▶ compiler ──┐
 *   interfaces with addresses ────────────────┤
 *   links of pods of other plugins ───────────┼──▶ keeper: what differs ──▶ kernel
 *   links with a default route ───────────────┤
 *   IPVS ─────────────────────────────────────┤
 *   sidecars that report ─────────────────────┘
 *
 * What the host tells is only read while a resource depends on it.
 */
import { FLOW_GROUP } from "../../firewall/policy-table.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../linux/netlink-socket.ts";
import { uplinkNames } from "../../linux/rtnetlink/uplinks.ts";
import { onceEach } from "../../log/once-each.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { DesiredTable, TableDelta } from "../../policy/table/desired-table.ts";
import type { AgentClock } from "../means.ts";
import { atMostEvery } from "./at-most-every.ts";
import { type BatchMeans, type CountedKernel, countBatches } from "./counted-kernel.ts";
import type { PolicyFacts } from "./facts.ts";
import { TableFlowRules } from "./flow-rules.ts";
import { HostInterfaces } from "./host-interfaces.ts";
import { findLogging } from "./kernel-logging.ts";
import { openKernelTable } from "./kernel-table.ts";
import { highestNumberInKernel } from "./numbers-in-kernel.ts";
import { TableKeeper } from "./table-keeper.ts";
import { type SummedTraffic, sumTraffic } from "./traffic.ts";
import { type WorkloadLinkMeans, WorkloadLinks } from "./workload-links.ts";

/** However often metrics are read, the rules are not read more often. */
const TRAFFIC_MILLISECONDS = 1_000;

export interface EnforcedTableMeans {
  readonly host: SocketOpener;
  readonly clock: Pick<AgentClock, "elapsed" | "now" | "wait">;
  readonly node: string;
  readonly hasServices: boolean;
  /** There must be a table, even if there is no policy. */
  readonly isRequired: boolean;
  /** Whether containers run on this host that are not among these endpoints, given by their interfaces. */
  readonly hasUnknownContainers: (known: Iterable<{ readonly interfaceName: string }>) => boolean;
  /** Whether the host has IPVS. */
  readonly hasIpvs: () => boolean;
  readonly routes: Pick<WorkloadLinkMeans, "kernel" | "events">;
  readonly report: (message: string) => void;
  /** Where the numbers of rules are kept until the host is switched off. */
  readonly ruleNumbersPath: string;
  readonly patiently: BatchMeans["patiently"];
  /** The kernel has acknowledged these changes. */
  readonly changed: (delta: TableDelta) => void;
  /** And these, of the table of a former agent. */
  readonly adopted: (delta: TableDelta, table: DesiredTable) => void;
  /** The kernel has acknowledged that these endpoints, by their keys, have other links. */
  readonly moved: (endpoints: readonly string[]) => void;
}

export class EnforcedTable {
  readonly compiler: PolicyCompiler;
  readonly keeper: TableKeeper;
  /** What the rules have counted. */
  readonly readTraffic: () => SummedTraffic;
  readonly flows: TableFlowRules;
  private readonly kernel: CountedKernel;
  private readonly interfaces: HostInterfaces;
  private readonly workloadLinks: WorkloadLinks;
  private readonly uplinks: NetlinkSocket;

  constructor(private readonly means: EnforcedTableMeans) {
    const { host, clock, node, hasServices, routes, report, changed, adopted } = means;
    this.kernel = countBatches(openKernelTable(host), { elapsed: clock.elapsed, report, patiently: means.patiently });
    this.uplinks = host.openSocket("route");
    const logging = findLogging(host, report);
    this.flows = this.flowRules(logging.labelProblem);
    const labelOf = logging.labelProblem === undefined ? this.flows.labelOf : undefined;
    const deniedGroup = logging.dropGroup === undefined ? undefined : FLOW_GROUP;
    this.compiler = new PolicyCompiler({ node, hasServices, ...logging, flows: { labelOf, deniedGroup } });
    this.keeper = new TableKeeper({
      ...{ compiler: this.compiler, kernel: this.flows.announcing(this.kernel.kernel), report, changed, adopted },
      isWanted: () => this.isWanted,
      hasUnknownContainers: () => means.hasUnknownContainers(this.compiler.localEndpoints.values()),
      compiled: () => this.addStateOfHost(),
    });
    this.interfaces = new HostInterfaces(host, (now) => this.keeper.updateInterfaces(now));
    this.workloadLinks = new WorkloadLinks({
      ...{ ...routes, wait: clock.wait, report: onceEach(report).report },
      changed: (now) => means.moved(this.keeper.updateWorkloadLinks(now)),
    });
    this.readTraffic = atMostEvery(TRAFFIC_MILLISECONDS, clock.elapsed, () => this.sumTraffic());
  }

  /** Otherwise there is no table, and all packets pass. */
  get isWanted(): boolean {
    return this.means.isRequired || this.compiler.policyCount + this.compiler.hostEndpointCount > 0;
  }

  get facts(): Pick<PolicyFacts, "endpoints" | "hostEndpoints" | "policies" | "problems" | "table" | "batches"> {
    const { compiler, kernel } = this;
    return {
      endpoints: compiler.localEndpoints.size,
      hostEndpoints: compiler.hostEndpointCount,
      policies: compiler.policyCount,
      problems: compiler.problems.length,
      table: compiler.table,
      batches: kernel.counts(),
    };
  }

  /** The kernel does not report a change of uplinks, nor that it has IPVS now. */
  lookAtHost(): void {
    this.keeper.updateIpvs(this.means.hasIpvs());
    if (this.compiler.hasOtherPrefixes) this.keeper.updateUplinks(uplinkNames(this.uplinks));
  }

  /** They follow the host until the signal is aborted, and reject if they cannot. */
  loops(stop: AbortSignal): readonly Promise<void>[] {
    return [this.interfaces.run(stop), this.workloadLinks.run(stop)];
  }

  /** The table stays. */
  close(): void {
    this.kernel.kernel.close();
    this.flows.close();
    closeNetlinkSocket(this.uplinks);
  }

  /** What changed resources depend on. */
  private addStateOfHost(): void {
    const { compiler, interfaces, workloadLinks, uplinks } = this;
    const found = interfaces.follow(compiler.dependsOnAddresses);
    if (found !== undefined) compiler.setHostInterfaces(found);
    if (compiler.hasOtherPrefixes) compiler.setUplinks(uplinkNames(uplinks));
    compiler.setIpvs(this.means.hasIpvs());
    compiler.setWorkloadLinks(workloadLinks.follow(compiler.addressesToFind));
  }

  private flowRules(labelProblem: string | undefined): TableFlowRules {
    const { host, clock, ruleNumbersPath, report } = this.means;
    return new TableFlowRules({
      ...{ path: ruleNumbersPath, clock, report: onceEach(report).report, labelProblem },
      highestInKernel: () => highestNumberInKernel(host),
      renewLabels: () => this.keeper.renewLabels(),
      settings: () => this.compiler.settings,
      labelled: () => this.compiler.labelled,
      counts: () => this.kernel.kernel.counts(),
      isSettled: () => this.keeper.isSettled,
    });
  }

  private sumTraffic(): SummedTraffic {
    const titles = this.compiler.policyTitles;
    return sumTraffic(this.kernel.kernel.counts(), (policy) => titles.has(policy));
  }
}
