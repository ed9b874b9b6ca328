/** Reads what `status` reports about one host: from the host itself, and from the datastore of its network. */
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { findInstalledNetwork } from "../../config/installed-network.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import type { KnownStatus } from "../../datastore/replica/status-file.ts";
import { describeFailure } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type ReadPolicy, readPolicy } from "../../policy/read-resources.ts";
import { redact } from "../../redaction.ts";
import type { Context, Given } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { findIpamProblems } from "../ipam/check.ts";
import { NO_DEMAND, policyDemand } from "../node/agent-findings.ts";
import { checkFacts, circumstancesOf } from "../node/check.ts";
import { nodeOrHostName } from "../node/node-name.ts";
import { readNodeLinks } from "../resources/name-notes.ts";
import type { DatastoreState } from "./facts.ts";
import { containerStates, type HostStatusFacts, hostEndpointStates, policyStates } from "./host-facts.ts";
import { readDatastoreState } from "./read-datastore.ts";

export async function readHostStatus(context: Context, given: Given): Promise<HostStatusFacts> {
  const network = await readNetwork(context);
  const hostName = await context.hostName();
  const node = await nodeOrHostName(context, given);
  const circumstances = await circumstancesOf(context, given);
  const records = circumstances.isDatastoreKnown ? await readRecords(context, given) : NO_RECORDS;
  const { policy } = records;
  const demand = policy === undefined ? NO_DEMAND : policyDemand(policy.resources, node);
  const host = await readHost(context, { ...circumstances, demand });
  const links = await readNodeLinks(context, node);
  return {
    ...{ toolVersion: context.version, hostName, node, network },
    ...host,
    datastore: records.datastore,
    containers: policy === undefined ? [] : containerStates(policy.resources, node),
    hostEndpoints: policy === undefined ? [] : hostEndpointStates(policy.resources, node, links),
    policies: policy === undefined ? [] : policyStates(policy.resources, node),
    ipam: records.ipam,
    unreadable: policy?.unreadable ?? [],
  };
}

const { adminTool } = identity;

async function readNetwork(context: Context): Promise<HostStatusFacts["network"]> {
  try {
    const installed = await findInstalledNetwork(context);
    if (installed !== undefined) return { file: installed.file, config: installed.decoded.config };
    return {
      problem: `no network config in ${NETWORK_CONFIG_DIRECTORY} runs the plugin "${identity.product}"`,
      remedy: `write one, then run: ${adminTool} config check FILE; for a cluster: ${adminTool} status --kubeconfig FILE`,
    };
  } catch (failure) {
    return { problem: describeFailure(failure) };
  }
}

interface Records {
  readonly datastore: HostStatusFacts["datastore"];
  readonly policy?: ReadPolicy;
  readonly ipam: HostStatusFacts["ipam"];
}

/** Neither a network config nor a setting names a datastore. */
const NO_RECORDS: Records = { datastore: { kind: "none", place: "", pools: [], agents: [] }, ipam: [] };

/** A datastore that cannot be read is reported, and the rest of the status with it. */
async function readRecords(context: Context, given: Given): Promise<Records> {
  let place = "";
  let state: DatastoreState = { kind: "unknown", pools: [], agents: [] };
  try {
    return await withDatastore(context, given, async (store, settings) => {
      place = placeOf(settings);
      state = { ...state, kind: settings.kind };
      return await readAll(store, { context, given, settings });
    });
  } catch (failure) {
    context.signal.throwIfAborted();
    return { datastore: { ...state, place, problem: redact(describeFailure(failure)) }, ipam: [] };
  }
}

async function readAll(
  store: Datastore,
  sources: { readonly context: Context; readonly given: Given; readonly settings: DatastoreSettings },
): Promise<Records> {
  const { settings } = sources;
  const state = await readDatastoreState(store, settings.kind);
  const policy = await readPolicy(store);
  const ipam = await findIpamProblems(store, { ...sources, isEmbedded: settings.kind === "embedded" });
  return { datastore: { ...state, place: placeOf(settings) }, policy, ipam };
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
async function readHost(context: Context, circumstances: Parameters<typeof checkFacts>[1]): Promise<HostPart> {
  try {
    const facts = await context.readHostFacts();
    const { datastore, policyProblems, routingProblems } = await context.readRoutingFacts();
    const age = datastore === undefined ? [] : ageText(datastore);
    return {
      agent: facts.agent,
      nodeCheck: checkFacts(facts, circumstances),
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
