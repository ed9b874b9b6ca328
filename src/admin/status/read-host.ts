/** Reads what `status` reports about one host: from the host itself, and from the datastore of its network. */

import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { findInstalledNetwork, networkConfigDirectory } from "../../config/installed-network.ts";
import { installedListName } from "../../config/installed-network-list.ts";
import type { NetworkConfig } from "../../config/network-config.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach } from "../../datastore/read-each.ts";
import type { KnownStatus } from "../../datastore/replica/status-file.ts";
import { describeFailure } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { choosePools, type Pool } from "../../ipam/pools.ts";
import { type ReadPolicy, readPolicy } from "../../policy/read-resources.ts";
import { redact } from "../../redaction.ts";
import { choiceOf, withExisting } from "../datastore/open.ts";
import type { HostFacts } from "../host/facts.ts";
import { nodeOrHostName } from "../host/node-name.ts";
import { findIpamProblems } from "../ipam/check/check.ts";
import { findPools } from "../ipam/pools.ts";
import type { Given } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host, HostAccess, HostNetwork } from "../main/context.ts";
import { NO_DEMAND, policyDemand } from "../node/agent-findings.ts";
import { checkFacts, circumstancesOf, readUnknown } from "../node/check.ts";
import { endpointsWithoutContainer } from "../policy/endpoints-without-container.ts";
import { readNodeLinks } from "../resources/name-notes.ts";
import type { DatastoreState } from "./facts.ts";
import {
  containerStates,
  type HostStatusFacts,
  hostEndpointStates,
  policyStates,
  profilesMissing,
} from "./host-states.ts";
import { readDatastoreState } from "./read-datastore.ts";

export async function readHostStatus(context: DatastoreAccess & Host & Clock, given: Given): Promise<HostStatusFacts> {
  const network = await readNetwork(context);
  const hostName = await context.hostName();
  const node = await nodeOrHostName(context, given);
  const circumstances = await circumstancesOf(context, given);
  const records = circumstances.isDatastoreKnown ? await readRecords(context, given) : NO_RECORDS;
  const { policy } = records;
  const demand = policy === undefined ? NO_DEMAND : policyDemand(policy.resources, node);
  const gone = await endpointsWithoutContainer(context, policy?.resources.endpoints ?? [], node);
  const unknown = ({ podLinks }: Pick<HostFacts, "podLinks">) =>
    policy === undefined ? [] : readUnknown(context, given, { podLinks, network: circumstances.network });
  const host = await readHost(context, { ...circumstances, demand }, unknown);
  const links = await readNodeLinks(context, node);
  return {
    ...{ toolVersion: context.version, hostName, node, network },
    ...host,
    datastore: records.datastore,
    poolRefusals: "config" in network && policy !== undefined ? poolRefusals(network.config, records, node) : [],
    containers: policy === undefined ? [] : containerStates(policy.resources, node, gone),
    hostEndpoints: policy === undefined ? [] : hostEndpointStates(policy.resources, node, links),
    policies: policy === undefined ? [] : policyStates(policy.resources, node),
    missingProfiles: policy === undefined ? [] : profilesMissing(policy.resources, node),
    ipam: records.ipam,
    unreadable: policy?.unreadable ?? [],
  };
}

const { adminTool } = identity;

async function readNetwork(context: Call & Files): Promise<HostStatusFacts["network"]> {
  try {
    const installed = await findInstalledNetwork(context);
    if (installed !== undefined) {
      return { file: installed.file, config: installed.decoded.config, skipped: installed.skipped };
    }
    const directory = networkConfigDirectory(context);
    const example = await findExample(context);
    const start = example === undefined ? "write one" : `cp ${example} ${directory}/`;
    return {
      problem: `no network config in ${directory} runs the plugin "${identity.product}"`,
      remedy: `${start}, then run: ${adminTool} config check; for a cluster: ${adminTool} status --kubeconfig FILE`,
    };
  } catch (failure) {
    return { problem: describeFailure(failure) };
  }
}

/** Where a package and `make install` put the example for one host; `undefined` if it is not there. */
async function findExample({ listFolder }: Files): Promise<string | undefined> {
  const name = installedListName("embedded", identity);
  for (const directory of ["/usr/share", "/usr/local/share"].map((share) => `${share}/${identity.product}`)) {
    const names = await listFolder(directory).catch(() => undefined);
    if (names?.includes(name)) return `${directory}/${name}`;
  }
  return undefined;
}

/** As an ADD on this node chooses among the pools; those that a container asks for are not known. */
function poolRefusals({ ipam }: NetworkConfig, { pools, policy }: Records, node: string): readonly string[] {
  if (ipam.type !== identity.ipamType || pools === undefined) return [];
  const labels = policy?.nodes.find(({ metadata }) => metadata.name === node)?.metadata.labels ?? {};
  const criteria = { unreadable: pools.unreadable, intendedUse: "Workload", node, namespace: "any" as const, labels };
  const addressRequests = [
    ...(ipam.assignIpv4 ? [{ ...criteria, family: 4 as const, asked: ipam.ipv4Pools }] : []),
    ...(ipam.assignIpv6 ? [{ ...criteria, family: 6 as const, asked: ipam.ipv6Pools }] : []),
  ];
  return addressRequests.flatMap((each) => {
    try {
      choosePools(pools.readable, each);
      return [];
    } catch (failure) {
      return [describeFailure(failure)];
    }
  });
}

interface Records {
  readonly datastore: HostStatusFacts["datastore"];
  readonly pools?: ReadEach<Pool>;
  readonly policy?: ReadPolicy;
  readonly ipam: HostStatusFacts["ipam"];
}

/** Neither a network config nor a setting names a datastore. */
const NO_RECORDS: Records = { datastore: { kind: "none", place: "", pools: [], agents: [] }, ipam: [] };

/** A datastore that cannot be read is reported, and the rest of the status with it. */
async function readRecords(context: DatastoreAccess & Host & Clock, given: Given): Promise<Records> {
  let place = "";
  let state: DatastoreState = { kind: "unknown", pools: [], agents: [] };
  try {
    const choice = await choiceOf(context, given);
    const { settings } = choice;
    place = placeOf(settings);
    state = { ...state, kind: settings.kind };
    return await withExisting(choice, context, (store) => readAll(store, { context, given, settings }));
  } catch (failure) {
    context.signal.throwIfAborted();
    return { datastore: { ...state, place, problem: redact(describeFailure(failure)) }, ipam: [] };
  }
}

async function readAll(
  store: Datastore,
  sources: { readonly context: HostAccess & Clock; readonly given: Given; readonly settings: DatastoreSettings },
): Promise<Records> {
  const { settings } = sources;
  const state = await readDatastoreState(store, settings.kind);
  const policy = await readPolicy(store);
  const ipam = await findIpamProblems(store, { ...sources, isEmbedded: settings.kind === "embedded" });
  return { datastore: { ...state, place: placeOf(settings) }, pools: await findPools(store), policy, ipam };
}

function placeOf(settings: DatastoreSettings): string {
  switch (settings.kind) {
    case "embedded":
      return settings.path;
    case "etcd":
      return redact(
        settings.source.kind === "endpoints" ? settings.source.endpoints.join(",") : settings.source.domain,
      );
    case "orchestrator":
      return "";
  }
}

type HostPart = Pick<HostStatusFacts, "agent" | "nodeCheck" | "agentProblems">;

/** Only root may look at the kernel's tables and at the agent's files. */
async function readHost(
  context: Call & Host & HostNetwork,
  circumstances: Omit<Parameters<typeof checkFacts>[1], "unknown">,
  findUnknown: (facts: HostFacts) => Promise<readonly string[]> | readonly string[],
): Promise<HostPart> {
  try {
    const facts = await context.readHostFacts();
    const unknown = await findUnknown(facts);
    const { datastore, policyProblems, routingProblems } = await context.readRoutingFacts();
    const age = datastore === undefined ? [] : ageText(datastore);
    return {
      agent: facts.agent,
      nodeCheck: checkFacts(facts, { ...circumstances, unknown }),
      agentProblems: facts.agent === "running" ? [...age, ...policyProblems, ...routingProblems] : [],
    };
  } catch (failure) {
    context.signal.throwIfAborted();
    return { agent: undefined, nodeCheck: { problem: describeFailure(failure) }, agentProblems: [] };
  }
}

/** An agent that has just started is still listing. */
function ageText({ state, failure }: KnownStatus): readonly string[] {
  if (state !== "stale") return [];
  return [`what it knows of the datastore is old${failure === undefined ? "" : `: ${failure}`}`];
}
