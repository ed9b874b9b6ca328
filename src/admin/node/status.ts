import type { KnownStatus } from "../../datastore/replica/status-file.ts";
import { identity } from "../../identity.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { KernelRoute, RoutingFacts } from "../host/facts.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, HostNetwork, Terminal } from "../main/context.ts";
import { type Page, stdoutPage } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";

export async function run(context: Call & Terminal & HostNetwork & Clock, given: Given): Promise<ExitCode> {
  const facts = await context.readRoutingFacts();
  const isFailed = !facts.isAgentRunning || isBirdMissing(facts) || facts.state?.kind === "failed";
  if (wantsJson(given)) context.stdout(`${JSON.stringify(jsonOf(facts, context.now()), undefined, 2)}\n`);
  else print(facts, context);
  return isFailed ? EXIT_FAILED : EXIT_OK;
}

function isBirdMissing({ bird, state }: RoutingFacts): boolean {
  return bird === undefined && state?.kind === "running";
}

function jsonOf(facts: RoutingFacts, now: Date) {
  const { isAgentRunning, state, bird, kernelRoutes, refusedClaims, datastore, ...problems } = facts;
  return {
    nodeAgent: isAgentRunning ? "running" : "not running",
    ...(datastore && { datastore: { ...datastore, ageSeconds: ageOf(datastore, now) } }),
    bgp: {
      state: bird === undefined ? "not running" : "running",
      ...(state?.reason !== undefined && { reason: state.reason }),
      ...(bird && {
        version: bird.version,
        routerID: bird.routerId,
        since: bird.startedAt,
        isRecovering: bird.isRecovering,
      }),
      problems: bgpProblems(state, bird),
      sessions: bird?.sessions ?? [],
    },
    routes: summaryOf(kernelRoutes),
    ...(problems.routingProblems.length > 0 && { routingProblems: problems.routingProblems }),
    ...(problems.policyProblems.length > 0 && { policyProblems: problems.policyProblems }),
    ...(refusedClaims.length > 0 && { annotationsWithoutEffect: refusedClaims }),
  };
}

function bgpProblems(state: RoutingFacts["state"], bird: RoutingFacts["bird"]): readonly string[] {
  const limited = (bird?.sessions ?? []).filter(({ isLimitHit }) => isLimitHit);
  return [...(state?.problems ?? []), ...limited.map(limitProblem)];
}

function limitProblem({ name, peer }: SessionStatus): string {
  const restart = `birdc -s ${birdFiles(identity.runDirectory).control} restart ${name}`;
  return `${peer} has sent more routes than are accepted, and some are missing; when it sends fewer, begin the session again: ${restart}`;
}

function print(facts: RoutingFacts, context: Call & Terminal & Clock): void {
  const { stdout, now } = context;
  const page = stdoutPage(context);
  const { isAgentRunning, state, bird, kernelRoutes, refusedClaims, routingProblems, policyProblems, datastore } =
    facts;
  const { nodeAgent } = identity;
  stdout(`Node agent: ${isAgentRunning ? "running" : `not running (systemctl status ${nodeAgent})`}\n`);
  if (datastore !== undefined) stdout(`Datastore: ${datastoreLine(datastore, now())}\n`);
  stdout(`BGP: ${birdLine(facts)}\n`);
  for (const problem of bgpProblems(state, bird)) stdout(`Problem: ${problem}\n`);
  for (const family of [4, 6] as const) {
    const sessions = (bird?.sessions ?? []).filter(({ address }) => address.includes(":") === (family === 6));
    stdout(`\nIPv${family} BGP status\n`);
    stdout(sessions.length === 0 ? `No IPv${family} peers found.\n` : sessionTable(sessions, page));
  }
  stdout("\nRoutes\n");
  const summary = summaryOf(kernelRoutes);
  stdout(
    summary.length === 0
      ? "None of BIRD or the node agent.\n"
      : formatTable(
          ["FAMILY", "MADE BY", "WAY", "ROUTES"],
          summary.map(({ family, madeBy, way, routes }) => [family, madeBy, way, String(routes)]),
          page,
        ),
  );
  for (const problem of routingProblems) stdout(`Problem: ${problem}\n`);
  if (policyProblems.length > 0) stdout("\nNetwork policy\n");
  for (const problem of policyProblems) stdout(`Problem: ${problem}\n`);
  if (refusedClaims.length === 0) return;
  stdout("\nAnnotations without effect\n");
  const rows = refusedClaims.flatMap(({ namespace, pod, refused }) =>
    refused.map((each) => [`${namespace}/${pod}`, each]),
  );
  stdout(formatTable(["POD", "CLAIM"], rows, page));
}

function ageOf({ knownAt }: KnownStatus, now: Date): number {
  return Math.max(0, Math.round((now.getTime() - Date.parse(knownAt)) / 1_000));
}

function datastoreLine(status: KnownStatus, now: Date): string {
  const age = ageOf(status, now);
  const reason = status.failure === undefined ? "" : `: ${status.failure}`;
  if (status.state === "in sync") return `in sync, last heard ${age} s ago`;
  if (status.state === "stale") return `not followed, last heard ${age} s ago${reason}`;
  return `not read yet, since ${age} s${reason}`;
}

function birdLine({ isAgentRunning, state, bird }: RoutingFacts): string {
  if (bird !== undefined) {
    const recovering = bird.isRecovering ? "; it was restarted, and waits for its peers before it changes routes" : "";
    const failed = state?.kind === "failed" ? `; ${state.reason}` : "";
    return `BIRD ${bird.version} is running, router ID ${bird.routerId}, since ${bird.startedAt}${recovering}${failed}`;
  }
  if (state === undefined) return "BIRD is not running: the node agent has not started it on this host yet";
  if (state.kind === "not needed") return `BIRD is not running: not needed, ${state.reason}`;
  if (state.kind === "failed") return `BIRD is not running: ${state.reason}`;
  const starter = isAgentRunning ? "the node agent starts it again" : "nothing starts it again without the node agent";
  return `BIRD is not running: it has ended, and ${starter}`;
}

function sessionTable(sessions: readonly SessionStatus[], page: Page): string {
  return formatTable(
    ["PEER ADDRESS", "PEER TYPE", "STATE", "SINCE", "INFO", "PEER", "RECEIVED", "SENT"],
    sessions.map(({ address, type, state, since, info, peer, routes }) => [
      address,
      type,
      state,
      since,
      info,
      peer,
      String(routes.imported),
      String(routes.exported),
    ]),
    page,
  );
}

interface RouteSummary {
  readonly family: string;
  readonly madeBy: string;
  readonly way: string;
  readonly routes: number;
}

function summaryOf(routes: readonly KernelRoute[]): readonly RouteSummary[] {
  const groups = Map.groupBy(routes, (route) => `${route.family} ${route.writer} ${wayOf(route)}`);
  return [...groups.values()]
    .flatMap((group): RouteSummary[] => {
      const [first] = group;
      if (first === undefined) return [];
      const { family, writer } = first;
      return [{ family: `IPv${family}`, madeBy: writer, way: wayOf(first), routes: group.length }];
    })
    .sort((left, right) => (keyOf(left) < keyOf(right) ? -1 : 1));
}

function keyOf({ family, madeBy, way }: RouteSummary): string {
  return `${family} ${madeBy} ${way}`;
}

function wayOf({ writer, kind, gateway, link }: KernelRoute): string {
  if (kind === "blackhole") return "own blocks";
  if (kind !== "unicast") return kind;
  if (writer === "node agent" && gateway === undefined) return "pods of this node";
  return link ?? "several paths";
}
