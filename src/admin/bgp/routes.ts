import type { BirdRoute } from "../../routing/bird/routes-status.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { RoutingFacts } from "../host/facts.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, HostNetwork, Terminal } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";

export async function run(context: Call & Terminal & HostNetwork, given: Given): Promise<ExitCode> {
  const facts = await context.readRoutingFacts();
  const rows = rowsOf(facts);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ routes: rows }, undefined, 2)}\n`);
  else if (rows.length > 0) {
    context.stdout(
      formatTable(
        ["DESTINATION", "NEXT HOP", "INTERFACE", "LEARNED FROM", "IN FIB"],
        rows.map(({ destination, nextHop, interface: link, learnedFrom, inFib }) => [
          destination,
          nextHop.join(", "),
          link.join(", "),
          learnedFrom,
          inFib ? "yes" : "no",
        ]),
        stdoutPage(context),
      ),
    );
  }
  if (facts.bird !== undefined) return EXIT_OK;
  const reason = facts.state?.reason === undefined ? "" : `: ${facts.state.reason}`;
  context.stderr(`BIRD is not running${reason}\n`);
  return EXIT_FAILED;
}

interface RouteRow {
  readonly destination: string;
  readonly nextHop: readonly string[];
  readonly interface: readonly string[];
  readonly learnedFrom: string;
  readonly inFib: boolean;
}

/** Routes of BIRD, then those in the kernel that it does not know. */
function rowsOf({ bird, kernelRoutes }: RoutingFacts): readonly RouteRow[] {
  const inKernel = kernelRoutes.filter(({ writer }) => writer === "BIRD");
  const fib = new Map(inKernel.map((route) => [route.destination, route]));
  const sessions = new Map(bird?.sessions.map((session) => [session.name, session]));
  const known = (bird?.routes ?? []).filter(({ source, protocol }) => source === "BGP" || protocol.startsWith("own"));
  const destinations = new Set(known.map(({ destination }) => destination));
  return [
    ...known.map((route) => rowOf(route, sessions, route.isBest && fib.has(route.destination))),
    ...inKernel
      .filter(({ destination }) => !destinations.has(destination))
      .map(({ destination, gateway, link }) => ({
        destination,
        nextHop: gateway === undefined ? [] : [gateway],
        interface: link === undefined ? [] : [link],
        learnedFrom: bird === undefined ? "unknown, BIRD is not running" : "unknown to BIRD",
        inFib: true,
      })),
  ];
}

function rowOf(route: BirdRoute, sessions: ReadonlyMap<string, SessionStatus>, isInKernel: boolean): RouteRow {
  const session = sessions.get(route.protocol);
  const isOwn = route.source !== "BGP";
  const nextHop = route.hops.flatMap(({ gateway }) => gateway ?? []);
  return {
    destination: route.destination,
    nextHop: nextHop.length === 0 && !isOwn ? [route.kind] : nextHop,
    interface: [...new Set(route.hops.map(({ link }) => link))],
    learnedFrom: isOwn ? "this node" : session === undefined ? route.protocol : originOf(session),
    inFib: !isOwn && isInKernel,
  };
}

function originOf({ type, peer, address }: SessionStatus): string {
  return `${type} ${address} (${peer})`;
}
