/**
 * The part of the node agent that keeps the records of its host up to date: at its start, then every few minutes.
 *
 *   registration   records the identity of this machine. So two machines that claim one node name are noticed, whichever
 *                  of them came first: the plugins of the machine that is not registered refuse ADD and GC, and its agent
 *                  logs the reason and the remedy
 *   left           deletes endpoints without a link, a route or an address of our IPAM; only after the registration succeeded
 *   leaks          releases addresses of containers that are gone, as well
 *
 * `vendorctl node register` registers, and `vendorctl ipam gc` releases, by the same functions (src/upkeep).
 */
import { describeFailure } from "../../errors.ts";
import { trackedConnections } from "../../firewall/tracked-connections.ts";
import { attachmentsFolder, readAttachments } from "../../ipam/attachment-record.ts";
import { readLinks } from "../../ipam/leaks/host-links.ts";
import type { NetfilterAccess } from "../../linux/netfilter-access.ts";
import { hostAddresses, sourceTowards } from "../../linux/rtnetlink/host-addresses.ts";
import { onceEach } from "../../log/once-each.ts";
import { titleInKey } from "../../model/keys.ts";
import { quoted } from "../../quote.ts";
import { collectLeaks, describeCollected } from "../../upkeep/collect-leaks.ts";
import type { HostMeans } from "../../upkeep/host-means.ts";
import { OrphanedEndpoints } from "../../upkeep/orphaned-endpoints.ts";
import { refuseLaterCluster } from "../../upkeep/raise-cluster-version.ts";
import { registerForAgent } from "../../upkeep/register.ts";
import { VERSION } from "../../version.ts";
import type { AgentClock } from "../means.ts";
import type { AgentNetwork } from "../network/agent-network.ts";
import type { FollowedNetwork } from "../network/followed-network.ts";
import type { AgentPart } from "../supervise.ts";
import { FollowedClaims } from "./followed-claims.ts";

export const UPKEEP_MILLISECONDS = 5 * 60 * 1000;
/** After a failure: the datastore may have started later than this host. */
const RETRY_MILLISECONDS = 30 * 1000;

/** How long a search for leaks waits until the blocks are listed; the next pass tries again. */
const BLOCKS_MILLISECONDS = 30 * 1000;

interface Given extends Pick<FollowedNetwork, "means" | "network" | "store" | "replica" | "blocks" | "log"> {
  readonly netfilter: NetfilterAccess;
}

interface Upkeep extends Given {
  readonly left: OrphanedEndpoints;
  /** `undefined` if the claims of the node can be listed without those of others. */
  readonly claims: FollowedClaims | undefined;
}

export function upkeepPart({ log: logEach, ...given }: Given): AgentPart {
  const { clock, files } = given.means;
  const means = { elapsed: clock.elapsed, machineIdentity: files.ensureMachineIdentity };
  const left = new OrphanedEndpoints(given.store, means);
  // What is found at each pass is said once.
  const warnings = onceEach((message) => logEach(message, "WARNING"));
  const log: Given["log"] = (message, level) =>
    level === "WARNING" ? warnings.report(message) : logEach(message, level);
  return {
    name: "the upkeep of the node's records",
    run: async (signal) => {
      const { wait, random } = clock;
      const failed = new AbortController();
      const stop = AbortSignal.any([signal, failed.signal]);
      const { claims, followed } = followClaims(given, stop);
      const pass = () => keepUp({ ...given, left, claims, log }, stop);
      try {
        // Passes without what they follow would find less: if that fails, the part fails, and is started again.
        await Promise.all([repeatUpkeep(pass, { wait, random, log, signal: stop }), followed]);
      } finally {
        failed.abort();
      }
    },
  };
}

/** An iteration over updates ends with the signal, and so does the upkeep. */
function followClaims(
  { means, network, store, blocks }: Omit<Given, "log">,
  signal: AbortSignal,
): { readonly claims: FollowedClaims | undefined; readonly followed?: Promise<void> } {
  if (!store.isOrchestratorApi || blocks === undefined) return { claims: undefined };
  const claims = new FollowedClaims({
    store,
    node: network.node,
    elapsed: means.clock.elapsed,
    random: means.clock.random,
  });
  return { claims, followed: claims.follow(blocks.updates(signal)) };
}

/** Where plugins look for it. A file that cannot be written is reported: the plugins may have another source. */
export function recordNodeName({ means, network, log }: Pick<Given, "means" | "network" | "log">): void {
  const { node, nodeNameFile } = network;
  try {
    means.files.replaceFile(nodeNameFile, `${node}\n`);
  } catch (failure) {
    log(`Cannot write the node name to ${quoted(nodeNameFile)}: ${describeFailure(failure)}`, "WARNING");
  }
}

interface Repetition extends Pick<FollowedNetwork, "log"> {
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  /** From 0 up to 1. */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/**
 * Sooner again after a failure; the same failure is logged once. A pass in progress does not keep the agent from ending.
 * Agents that start together, or fail together, do not go on together: each has its own moment in the period.
 */
export async function repeatUpkeep(
  pass: () => Promise<void>,
  { wait, random, log, signal }: Repetition,
): Promise<void> {
  let known: string | undefined;
  let hasMoment = false;
  while (!signal.aborted) {
    const failure = await unlessAborted(
      pass().then(() => undefined, describeFailure),
      signal,
    );
    if (signal.aborted) return;
    if (failure !== undefined && failure !== known) log(failure, "ERROR");
    known = failure;
    if (failure !== undefined) await wait((RETRY_MILLISECONDS * (1 + random())) / 2, signal);
    else await wait(hasMoment ? UPKEEP_MILLISECONDS : UPKEEP_MILLISECONDS * random(), signal);
    hasMoment = failure === undefined;
  }
}

/** `undefined` as soon as the signal is aborted. Nothing of it stays with the signal, which lives as long as the agent. */
async function unlessAborted<Value>(work: Promise<Value>, signal: AbortSignal): Promise<Value | undefined> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  const stop = () => resolve(undefined);
  signal.addEventListener("abort", stop, { once: true });
  return Promise.race([work, promise]).finally(() => signal.removeEventListener("abort", stop));
}

async function keepUp(upkeep: Upkeep, signal: AbortSignal): Promise<void> {
  recordNodeName(upkeep);
  await register(upkeep, signal);
  await refuseLaterCluster(upkeep.store, VERSION);
  if (!signal.aborted) await removeOrphanedEndpoints(upkeep, signal);
  if (!signal.aborted) await releaseLeaks(upkeep, signal);
}

async function register({ means, network, store, log }: Upkeep, signal: AbortSignal): Promise<void> {
  const own = { ...hostMeans({ means, log }, signal), log: (message: string) => log(message, "INFO") };
  await registerForAgent(store, hostOf(network, VERSION), own);
}

/** What an agent of this release registers of the host with this network. */
export function hostOf({ node: name, settings, orchestrator }: AgentNetwork, agentVersion: string) {
  const { access, nodeName } = orchestrator;
  const inOrchestrator = access && { access, nodeName };
  return { name, kind: settings.kind, whenTaken: "refuse", agentVersion, orchestrator: inOrchestrator } as const;
}

function hostMeans({ means, log }: Pick<Given, "means" | "log">, signal: AbortSignal): HostMeans {
  const { kernel, clock, files, uuid } = means;
  const warn = (message: string) => log(message, "WARNING");
  return {
    ...{ signal, warn, uuid },
    now: clock.now,
    hostName: files.hostName,
    machineIdentity: files.ensureMachineIdentity,
    hostAddresses: async () => hostAddresses(kernel),
    sourceTowards: (destination, family) => sourceTowards(kernel, destination, family),
    openKubeClient: (access) => means.openKubeClient(access, warn),
  };
}

/** The agent serves calls, and so wires containers, in its own network namespace: the links that it sees are all. */
async function releaseLeaks(
  { means, network, store, claims, log, netfilter }: Upkeep,
  signal: AbortSignal,
): Promise<void> {
  const { kernel, clock, files } = means;
  if (claims !== undefined && !(await areKnown(claims, clock, signal))) return;
  await claims?.listIfDue();
  const { agentAccess: access } = network.orchestrator;
  const warn = (message: string) => log(message, "WARNING");
  const opened: { close(): Promise<void> }[] = [];
  const openApi = async () => {
    if (access === undefined) return undefined;
    const client = await means.openKubeClient(access, warn);
    opened.push(client);
    return client;
  };
  const links = {
    ...readLinks(kernel),
    attachments: readAttachments(files.openFolder(attachmentsFolder(files.runDirectory))),
    bootedAt: files.bootedAt(),
    isHostNamespace: true,
  };
  try {
    const { node } = network;
    const isEmbedded = network.settings.kind === "embedded";
    const collected = await collectLeaks(
      store,
      { node, isEmbedded, links, earlier: "keep", claims, isDryRun: false, openApi },
      {
        ...{ now: clock.now, random: clock.random, warn },
        wait: (milliseconds) => clock.wait(milliseconds, signal),
        machineIdentity: files.ensureMachineIdentity,
        containerAddresses: async () => means.containerAddresses(),
        forgetConnections: async (addresses) => (await trackedConnections(netfilter, warn))?.forget(addresses),
      },
    );
    const { leaks, blocks, waited, failure } = collected;
    if (leaks.length + blocks.length + waited.length > 0)
      for (const line of describeCollected(collected)) log(line, "INFO");
    if (failure !== undefined) throw failure;
  } finally {
    for (const client of opened) await client.close();
  }
}

/** Why blocks cannot be listed, their replica reports. */
async function areKnown(
  { areKnown }: Pick<FollowedClaims, "areKnown">,
  { wait }: Pick<AgentClock, "wait">,
  signal: AbortSignal,
): Promise<boolean> {
  const known = new AbortController();
  const late = wait(BLOCKS_MILLISECONDS, AbortSignal.any([signal, known.signal])).then(() => false);
  const isInTime = await Promise.race([areKnown.then(() => true), late]);
  known.abort();
  return isInTime;
}

/** Pods of the orchestrator are their own endpoints, and those that another plugin connects have no link of ours. */
async function removeOrphanedEndpoints(
  { means, network, store, replica, left, log }: Upkeep,
  signal: AbortSignal,
): Promise<void> {
  const endpoints = replica.part(["endpoints"]).snapshot?.endpoints;
  if (endpoints === undefined || store.isOrchestratorApi || network.isForAgentOnly) return;
  const isEmbedded = network.settings.kind === "embedded";
  const removed = (key: string) =>
    log(`Deleted endpoint ${quoted(titleInKey(key))}: the host has no link for it, and IPAM no address`, "INFO");
  const host = { node: network.node, isEmbedded, links: readLinks(means.kernel) };
  await left.remove(endpoints, host, { removed, signal });
}
