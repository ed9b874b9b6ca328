/**
 * Keeps tunnel devices, neighbours, forwarding entries and routes between nodes as they are planned.
 *
 *   change of the plan ──▶ what follows from it ──▶ one call of the kernel ─── refused? ──┐
 *   event of the kernel ─▶ contradicts the plan? ─▶ soon after ──────────────────────────┴─▶ compare everything, correct
 *
 * At the start everything is compared too: what a former agent has left stays if it is right, so that no packet is lost.
 * Only devices with our names and routes with our protocol number are ours. While the plan is partial, nothing is removed
 * as stale.
 */
import type { Link } from "../../linux/rtnetlink/link.ts";
import type { NetworkEvent } from "../../linux/rtnetlink/network-monitor.ts";
import type { PlanChange, RoutePlan, TunnelName } from "../../routing/plan.ts";
import { type QuietMeans, quietReport } from "../quiet-report.ts";
import { AppliedPlan } from "./applied-plan.ts";
import { correctEntries, removeEntries } from "./correct-entries.ts";
import { correctRoutes } from "./correct-routes.ts";
import { describeCorrections, describeRefusals } from "./describe-network.ts";
import { EventCheck } from "./event-check.ts";
import type { NetworkKernel } from "./kernel-network.ts";
import type { RouteLinks } from "./planned-route.ts";
import { refusalsOf } from "./steps.ts";
import {
  type DeviceMeans,
  openTunnels,
  type PreparedDevices,
  prepareDevices,
  type RemovedDevices,
  removeUnplanned,
  vxlanPorts,
} from "./tunnel-devices.ts";

export interface Guarded extends Pick<RoutePlan, "senders" | "isPartial"> {
  readonly tunnels: ReadonlySet<TunnelName>;
  readonly vxlanPorts: readonly number[];
}

/** Drops tunnel packets that no node of the cluster sent. */
export interface TunnelGuard {
  /** Compares with the kernel, and corrects. Without an open tunnel there is no guard. Of a partial plan nothing is removed. */
  apply(plan: Guarded): void;
  /** Changes only the senders with these keys. */
  follow(plan: Guarded, changed: ReadonlySet<string>): void;
}

export interface NetworkMeans extends DeviceMeans, QuietMeans {
  readonly guard: TunnelGuard;
}

const NONE_REMOVED: RemovedDevices = { devices: [], addresses: [], problems: [] };

export class NetworkKeeper {
  private readonly applied = new AppliedPlan();
  private plan: RoutePlan | undefined;
  /** As of the last comparison. */
  private prepared: PreparedDevices | undefined;
  private check: EventCheck | undefined;
  /** As of the last comparison. */
  private guarded: Pick<Guarded, "tunnels" | "vxlanPorts"> = { tunnels: new Set(), vxlanPorts: [] };
  private mustCompare = false;
  private known: ReadonlySet<string> = new Set();
  private readonly report: (message: string) => void;

  constructor(private readonly means: NetworkMeans) {
    this.report = quietReport(means);
  }

  /** Whether the kernel may differ from the plan. */
  get isDoubtful(): boolean {
    return this.mustCompare && this.plan !== undefined;
  }

  /** What cannot be as planned, for people. */
  get problems(): ReadonlySet<string> {
    return this.known;
  }

  /** The tunnel devices as of the last comparison. */
  get devices(): ReadonlyMap<TunnelName, Link> {
    return this.prepared?.devices ?? new Map();
  }

  get routeCount(): number {
    return this.applied.routeCount;
  }

  get peerCount(): number {
    return this.applied.peerCount;
  }

  /** Whether neighbours on the link are of interest. */
  hasNeighbours(linkIndex: number): boolean {
    return this.check?.hasNeighbours(linkIndex) ?? false;
  }

  /** The next look compares everything. */
  distrust(): void {
    this.mustCompare = true;
  }

  notice(events: readonly NetworkEvent[]): void {
    if (this.mustCompare) return;
    if (events.some((event) => this.check?.contradicts(event))) this.mustCompare = true;
  }

  /** Gives the kernel what the plan has changed. If it refuses, everything is compared. */
  update(plan: RoutePlan, change: PlanChange): "settled" | "unsettled" {
    const isComplete = this.plan?.isPartial === true && !plan.isPartial;
    this.plan = plan;
    const { prepared } = this;
    if (prepared === undefined || change.tunnels.size > 0 || isComplete) this.mustCompare = true;
    // In doubt only a comparison is right: a route to be replaced may have become that of a pod.
    else if (!this.mustCompare && !this.follow(plan, change, prepared)) this.mustCompare = true;
    return this.look();
  }

  /** `unsettled`: something could not be corrected, and must be looked at again. */
  look(): "settled" | "unsettled" {
    const { plan } = this;
    if (plan === undefined || !this.mustCompare) return this.known.size === 0 ? "settled" : "unsettled";
    this.mustCompare = false;
    try {
      const problems = this.compare(plan);
      this.noteProblems(problems);
      return problems.length === 0 ? "settled" : "unsettled";
    } catch (failure) {
      this.mustCompare = true;
      this.noteProblems([`Cannot compare the routes to other nodes: ${reasonOf(failure)}`]);
      return "unsettled";
    }
  }

  /** Returns whether the kernel has accepted all of it. */
  private follow(plan: RoutePlan, change: PlanChange, prepared: PreparedDevices): boolean {
    const isGuarded =
      change.senders.size === 0 ||
      this.guard(() => this.means.guard.follow({ ...plan, ...this.guarded }, change.senders));
    const { steps, isComplete } = this.applied.follow(plan, change, linksOf(prepared));
    const isAccepted = refusalsOf(this.means.kernel, steps).length === 0;
    return isAccepted && isComplete && isGuarded === true;
  }

  /** Returns what could not be corrected. */
  private compare(plan: RoutePlan): readonly string[] {
    const { kernel } = this.means;
    const isFirst = this.prepared === undefined;
    const open = guardedBy(plan, kernel);
    // Before there is a device that strangers could send to.
    const guarded = open.tunnels.size > 0 ? this.applyGuard(plan, open) : true;
    const prepared = prepareDevices(plan.tunnels, this.means);
    const links = linksOf(prepared);
    const entries = correctEntries(plan, prepared.devices, kernel);
    const routes = correctRoutes(plan, links, kernel);
    const removedEntries = plan.isPartial ? 0 : removeEntries(entries.stale, kernel);
    const removedDevices = plan.isPartial ? NONE_REMOVED : removeUnplanned(plan.tunnels, kernel);
    // A rule goes after its device, or after its port.
    const stillOpen = guardedBy(plan, kernel);
    const isSame = open.tunnels.size > 0 && Bun.deepEquals(stillOpen, open);
    const unguarded = isSame ? true : this.applyGuard(plan, stillOpen);
    const problems = [
      ...[guarded, unguarded].filter((each) => each !== true),
      ...prepared.problems,
      ...(entries.refusals.length === 0 ? [] : [describeRefusals(entries.refusals)]),
      ...routes.problems,
      ...removedDevices.problems,
    ];
    this.prepared = prepared;
    this.applied.replace(plan, routes.failed);
    this.check = this.checkOf(prepared, links, problems.length > 0);
    if (!isFirst) {
      const restored = { devices: prepared.corrected, routes: routes.restored, entries: entries.restored };
      const removed = { ...removedDevices, routes: routes.removed, entries: removedEntries };
      for (const line of [describeCorrections("Restored", restored), describeCorrections("Removed stale", removed)]) {
        if (line !== undefined) this.report(line);
      }
    }
    return problems;
  }

  private checkOf(prepared: PreparedDevices, links: RouteLinks, isIncomplete: boolean): EventCheck {
    return new EventCheck({
      applied: this.applied,
      planned: (destination) => this.plan?.routes.get(destination),
      tunnels: prepared.devices,
      tunnelAddress: (tunnel) => this.plan?.tunnels.get(tunnel)?.address,
      hostLinks: prepared.host.links,
      ...{ links, isIncomplete },
    });
  }

  private applyGuard(plan: RoutePlan, guarded: Pick<Guarded, "tunnels" | "vxlanPorts">): true | string {
    this.guarded = guarded;
    return this.guard(() => this.means.guard.apply({ ...plan, ...guarded }));
  }

  /** Tunnels work without the guard too. Returns why there is none. */
  private guard(work: () => void): true | string {
    try {
      work();
      return true;
    } catch (failure) {
      return `Cannot install the tunnel source filter: ${reasonOf(failure)}`;
    }
  }

  /** Each is reported when it appears, not again until it has gone. */
  private noteProblems(problems: readonly string[]): void {
    for (const problem of problems) if (!this.known.has(problem)) this.means.report(problem);
    this.known = new Set(problems);
  }
}

function guardedBy(plan: RoutePlan, kernel: NetworkKernel): Pick<Guarded, "tunnels" | "vxlanPorts"> {
  return { tunnels: openTunnels(plan, kernel), vxlanPorts: vxlanPorts(plan, kernel) };
}

function linksOf({ devices, host }: PreparedDevices): RouteLinks {
  const tunnels = new Map(Array.from(devices, ([name, { index }]): [TunnelName, number] => [name, index]));
  return { tunnels, towards: (gateway) => host.towards(gateway)?.index };
}

function reasonOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
