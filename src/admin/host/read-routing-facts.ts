/** Reads the sessions and routes of this host for the admin tool. Loaded only by the commands that need them. */

import { existsSync } from "node:fs";
import { type BirdControl, connectBird } from "../../agent/bgp/control.ts";
import type { Environment } from "../../cni/environment.ts";
import { agentLockPath, callSocketPath, runDirectoryOf } from "../../config/run-directory.ts";
import { DATASTORE_STATUS_FILE, readDatastoreStatus } from "../../datastore/replica/status-file.ts";
import { PluginError } from "../../errors.ts";
import { POLICY_PROBLEMS_FILE, ROUTING_PROBLEMS_FILE, readProblems } from "../../health/problems-file.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { REFUSED_CLAIMS_FILE, readRefusedClaims } from "../../ipam/refused-claims.ts";
import { readText } from "../../linux/files.ts";
import { isLocked } from "../../linux/flock.ts";
import { type NetlinkSocket, ownSockets } from "../../linux/netlink-socket.ts";
import { listLinks } from "../../linux/rtnetlink/link.ts";
import { listRoutes, MAIN_TABLE, ROUTE_PROTOCOL, type Route } from "../../linux/rtnetlink/route.ts";
import { withRouteSocket } from "../../linux/rtnetlink/route-socket.ts";
import { closeStream, connectUnix } from "../../linux/unix-stream.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import { readRoutes } from "../../routing/bird/routes-status.ts";
import { readSessions } from "../../routing/bird/sessions-status.ts";
import { readBirdState } from "../../routing/bird/state.ts";
import type { AgentState, BirdFacts, KernelRoute, RoutingFacts } from "./facts.ts";

export async function readRoutingFacts(environment: Environment, isRoot: boolean): Promise<RoutingFacts> {
  if (!isRoot) {
    throw new PluginError("kernel-refused", "Cannot ask BIRD: permission denied", { details: "run it as root" });
  }
  const files = birdFiles(runDirectoryOf(environment));
  const state = readText(files.state);
  return {
    isAgentRunning: agentState(environment) === "running",
    state: state === undefined ? undefined : readBirdState(state),
    bird: await readBird(files.control),
    refusedClaims: readRefusedClaims(readText(`${runDirectoryOf(environment)}/${REFUSED_CLAIMS_FILE}`) ?? ""),
    routingProblems: readProblems(readText(`${runDirectoryOf(environment)}/${ROUTING_PROBLEMS_FILE}`) ?? ""),
    policyProblems: readProblems(readText(`${runDirectoryOf(environment)}/${POLICY_PROBLEMS_FILE}`) ?? ""),
    datastore: readDatastoreStatus(readText(`${runDirectoryOf(environment)}/${DATASTORE_STATUS_FILE}`) ?? ""),
    kernelRoutes: withRouteSocket(ownSockets, readKernelRoutes),
  };
}

/** The file of its lock stays until the host is switched off. It holds the lock before it serves calls. */
export function agentState(environment: Environment): AgentState {
  if (servesCalls(environment)) return "running";
  const lock = agentLockPath(environment);
  if (!existsSync(lock)) return "not used";
  return isLocked(lock) ? "running" : "stopped";
}

function servesCalls(environment: Environment): boolean {
  const stream = connectUnix(callSocketPath(environment));
  if (stream === undefined) return false;
  closeStream(stream);
  return true;
}

async function readBird(path: string): Promise<BirdFacts | undefined> {
  const control = await connectBird(path).catch(() => undefined);
  if (control === undefined) return undefined;
  try {
    return await askBird(control);
  } finally {
    control.close();
  }
}

async function askBird(control: BirdControl): Promise<BirdFacts> {
  const status = (await control.ask("show status")).lines.join("\n");
  const found = (pattern: RegExp) => pattern.exec(status)?.[1] ?? "";
  return {
    version: found(/^BIRD (\S+)$/m),
    routerId: found(/^Router ID is (\S+)$/m),
    startedAt: found(/^Last reboot on (\S+ [\d:]+)/m),
    isRecovering: status.includes("Graceful restart recovery in progress"),
    sessions: readSessions((await control.ask("show protocols all")).lines),
    routes: readRoutes((await control.ask("show route all")).lines),
  };
}

const WRITERS = new Map<number | undefined, KernelRoute["writer"]>([
  [ROUTE_PROTOCOL.bird, "BIRD"],
  [ROUTE_PROTOCOL.own, "node agent"],
]);

function readKernelRoutes(socket: NetlinkSocket): readonly KernelRoute[] {
  const links = new Map(listLinks(socket).map(({ index, name }) => [index, name]));
  return listRoutes(socket)
    .filter(({ table }) => table === MAIN_TABLE)
    .flatMap((route) => kernelRoute(route, links));
}

function kernelRoute(route: Route, links: ReadonlyMap<number, string>): readonly KernelRoute[] {
  const { destination, kind = "unicast", gateway, linkIndex, protocol } = route;
  const writer = WRITERS.get(protocol);
  if (writer === undefined) return [];
  const link = linkIndex === undefined ? undefined : links.get(linkIndex);
  return [
    {
      family: destination.network.family,
      destination: formatPrefix(destination),
      writer,
      kind,
      ...(gateway !== undefined && { gateway: formatAddress(gateway) }),
      ...(link !== undefined && { link }),
    },
  ];
}
