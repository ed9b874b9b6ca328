/** Corrects the routes between nodes: new and changed ones first, then the removals. */
import { formatPrefix } from "../../ip/prefix.ts";
import { deleteRoute, type Route } from "../../linux/rtnetlink/route.ts";
import { compareRoutes, type RouteDifference } from "../../routing/compare-routes.ts";
import type { RoutePlan } from "../../routing/plan.ts";
import { isOfWorkload } from "../../routing/workload-route.ts";
import { describeClash, describeRefusals, describeUnreached } from "./describe-network.ts";
import type { NetworkKernel } from "./kernel-network.ts";
import { isBetweenNodes, kernelRoute, type RouteLinks } from "./planned-route.ts";
import { settingSteps } from "./route-steps.ts";
import { removal, type Step, takeSteps } from "./steps.ts";

export interface CorrectedRoutes {
  readonly restored: readonly Route[];
  readonly removed: readonly Route[];
  /** The keys of routes that the kernel does not have. */
  readonly failed: ReadonlySet<string>;
  readonly problems: readonly string[];
}

export function correctRoutes(
  { routes, isPartial }: Pick<RoutePlan, "routes" | "isPartial">,
  links: RouteLinks,
  kernel: NetworkKernel,
): CorrectedRoutes {
  const { wanted, failed, unreached } = routesOf(routes, links);
  const tunnels = new Set(links.tunnels.values());
  const isOwn = (route: Route) => isBetweenNodes(route, tunnels);
  const found = compareRoutes(wanted, { routes: kernel.routes(), isOwn });
  // A planned route without a link would only be missing: the present one may still lead there.
  const mustStay = ({ destination }: Route) => isPartial || failed.has(formatPrefix(destination));
  const differences = found.filter((each) => each.kind !== "stale" || !mustStay(each.present));
  const clashes = differences.filter((each) => each.kind === "clash");
  // The address of a pod has just come from another node: the pod's route stays, and the plan follows.
  const foreign = clashes.filter(({ present }) => !isOfWorkload(present));
  const steps = stepsOf(differences);
  const outcomes = takeSteps(
    kernel,
    steps.map(({ step }) => step),
  );
  const restored: Route[] = [];
  const removed: Route[] = [];
  for (const { wanted: route } of clashes) failed.add(formatPrefix(route.destination));
  for (const [index, { route, isRemoval }] of steps.entries()) {
    if (route === undefined) continue;
    if (outcomes[index] === undefined) (isRemoval ? removed : restored).push(route);
    else if (!isRemoval) failed.add(formatPrefix(route.destination));
  }
  const refusals = outcomes.filter((refusal) => refusal !== undefined);
  return {
    restored,
    removed,
    failed,
    problems: [
      ...(unreached.length === 0 ? [] : [describeUnreached(unreached)]),
      ...foreign.map((clash) => describeClash(clash.wanted, clash.present)),
      ...(refusals.length === 0 ? [] : [describeRefusals(refusals)]),
    ],
  };
}

/** The routes for which there is a link. `unreached`: those whose gateway is in no subnet of this host. */
function routesOf(planned: RoutePlan["routes"], links: RouteLinks) {
  const wanted: Route[] = [];
  const failed = new Set<string>();
  const unreached: string[] = [];
  for (const [key, each] of planned) {
    const route = kernelRoute(each, links);
    if (route === undefined) failed.add(key);
    else wanted.push(route);
    if (route === undefined && each.hop.kind === "gateway") unreached.push(key);
  }
  return { wanted, failed, unreached };
}

interface RouteStep {
  readonly step: Step;
  /** Absent: the step only helps another one. */
  readonly route?: Route;
  readonly isRemoval: boolean;
}

function stepsOf(differences: readonly RouteDifference[]): readonly RouteStep[] {
  const puts = differences.flatMap((each): RouteStep[] => {
    if (each.kind !== "missing" && each.kind !== "changed") return [];
    const { before, setting, after } = settingSteps(each.kind === "missing" ? "add" : "replace", each.wanted);
    const helping = (step: Step): RouteStep => ({ step, isRemoval: false });
    return [...before.map(helping), { step: setting, route: each.wanted, isRemoval: false }, ...after.map(helping)];
  });
  const removals = differences.flatMap((each): RouteStep[] => {
    if (each.kind !== "stale") return [];
    return [{ step: removal(deleteRoute(exactly(each.present))), route: each.present, isRemoval: true }];
  });
  return [...puts, ...removals];
}

/** This very route: another one that took its place meanwhile stays. */
function exactly({ isOnLink: _flag, scope: _scope, mtu: _mtu, advertisedSegment: _segment, ...route }: Route): Route {
  return route;
}
