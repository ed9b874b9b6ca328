import type { BirdRoute } from "../../routing/bird/routes-status.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { RoutingFacts } from "../host/facts.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { stdoutPage } from "../terminal/page.ts";
import { formatTable } from "../terminal/table.ts";

export const bgpRoutes: Command = {
  kind: "command",
  name: "routes",
  summary: "Show the routes that this node learned and announces by BGP",
  description: [
    "Runs on the node, as root. Shows the routes of BIRD and whether the kernel uses them (IN FIB). A learned route that is not",
    "in the kernel lies in a pool with a tunnel mode, which the node agent routes, or a better route to its destination exists.",
    "Routes of this node are announced only; the routes to its pods are the node agent's.",
    "If BIRD does not run, only the routes are shown that it left in the kernel, and the exit code is 1.",
  ].join("\n"),
  examples: [
    { command: "bgp routes", does: "Which networks does this node know by BGP, and by whom?" },
    { command: "bgp routes -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
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
  },
};

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
