/** Records this host as a node: its addresses, its machine, its name in the orchestrator, the release of its agent. */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { isOfKubelet, wantedNode } from "../ipam/node-machine.ts";
import { decodeNode } from "../ipam/records.ts";
import { isForbidden } from "../kube/require-ok.ts";
import { AGENT_VERSION_ANNOTATION } from "../model/agent-version-annotation.ts";
import { NODE } from "../model/kinds.ts";
import { MACHINE_ANNOTATION, MACHINE_SINCE_ANNOTATION } from "../model/machine-annotation.ts";
import type { Node } from "../model/node.ts";
import { orchestratorReference, withOrchestratorReference } from "../model/node-reference.ts";
import { formatProblems } from "../model/problem.ts";
import { quoted } from "../quote.ts";
import type { HostMeans } from "./host-means.ts";
import { findOrchestratorName, type OrchestratorSide } from "./orchestrator-name.ts";
import { raiseClusterVersion } from "./raise-cluster-version.ts";
import { withHostAddresses } from "./registered-addresses.ts";
import { findReplacement } from "./replaced-machine.ts";

/** What happened to the record. */
export interface Registration {
  readonly action: "created" | "updated" | "unchanged";
  readonly revision: string;
}

export interface HostToRegister {
  readonly name: string;
  readonly kind: DatastoreSettings["kind"];
  /** Of this host in the orchestrator; `undefined` if nothing gives access to its API. */
  readonly orchestrator: OrchestratorSide | undefined;
  /** If another machine has registered the name. */
  readonly whenTaken: "refuse" | "replace";
  /** Of the agent that registers its host; absent if a command does. */
  readonly agentVersion?: string;
}

export async function registerHost(store: Datastore, host: HostToRegister, means: HostMeans): Promise<Registration> {
  const { name, kind, orchestrator, agentVersion } = host;
  const isForAgent = agentVersion !== undefined;
  const machine = await means.machineIdentity();
  const record: RecordOfHost = {
    ...host,
    machine,
    replacedAt: async (before) => {
      if (kind !== "etcd" || orchestrator === undefined) return undefined;
      return findReplacement(before, { machine, orchestrator }, means);
    },
    nameInOrchestrator: async (before) => {
      if (kind !== "etcd" || orchestrator === undefined) return undefined;
      const recorded = before && orchestratorReference(before.spec);
      // Nobody would delete a record without the name: that of a node which is deleted before the agent comes to add
      // it, or which was deleted and runs on.
      const isRequired = isForAgent && before === undefined;
      return findOrchestratorName(orchestrator, { node: name, recorded, isRequired }, means);
    },
    // The agent follows the addresses of its host as well (agent/node-record), and would be undone by what was read here.
    addressed: async (before, referred) =>
      isForAgent && before !== undefined
        ? before
        : withHostAddresses(before ?? {}, { store, means, name, referred, kind, orchestrator }),
  };
  if (isForAgent && kind === "orchestrator") return confirm(store, record);
  return register(store, record, means).catch(explainForbidden);
}

/** What an agent does for its host: it registers it, and raises the version of the cluster if all nodes have its own. */
export async function registerForAgent(
  store: Datastore,
  host: HostToRegister & { readonly agentVersion: string },
  means: HostMeans & { log(message: string): void },
): Promise<void> {
  const { action } = await registerHost(store, host, means);
  if (action !== "unchanged") means.log(`node/${host.name} ${action}`);
  const raised = await raiseClusterVersion(store, host.agentVersion).catch(ignoreForbidden);
  if (raised !== undefined) means.log(`The agents of all nodes have ${raised}: it is the version of the cluster now`);
}

/**
 * A node of the cluster belongs to its kubelet: the agent only adds its release, if its role allows it. The kubelet writes
 * to the node as well, above all when the network has just become ready: then it is read again.
 */
async function confirm(store: Datastore, host: RecordOfHost): Promise<Registration> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await confirmOnce(store, host);
    if (result !== "changed meanwhile") return result;
    if (attempt === ATTEMPTS) throw keepsChanging(host.name);
  }
}

async function confirmOnce(
  store: Datastore,
  { name, machine, agentVersion }: RecordOfHost,
): Promise<Registration | "changed meanwhile"> {
  const { answers } = await store.read([wantedNode(name)]);
  const entry = answers[0]?.[0];
  if (entry === undefined) throw notInCluster(name);
  const node = decodeNode(entry);
  const registered = node.machine;
  if (registered !== undefined && registered !== machine) throw taken(name, registered, machine);
  if (registered === undefined && !isOfKubelet(node, machine)) throw unknownMachine(name);
  const unchanged: Registration = { action: "unchanged", revision: entry.revision };
  const before = NODE.codec.read(entry.value, entry.key);
  const { annotations } = before.metadata;
  if (agentVersion === undefined || annotations?.[AGENT_VERSION_ANNOTATION] === agentVersion) return unchanged;
  const metadata = { ...before.metadata, annotations: { ...annotations, [AGENT_VERSION_ANNOTATION]: agentVersion } };
  const value = NODE.codec.write({ ...before, metadata }, entry.value);
  const written = await store
    .commit([{ kind: "update", key: entry.key, value, revision: entry.revision }])
    .catch(ignoreForbidden);
  if (written === undefined) return unchanged;
  return written.ok ? { action: "updated", revision: written.revision } : "changed meanwhile";
}

/** With the role of the plugin alone the agent works too; then nobody knows its release. */
function ignoreForbidden(failure: unknown): undefined {
  if (!isForbidden(failure)) throw failure;
}

/** Where kubeadm puts it. */
const KUBELET_CONFIG = "/etc/kubernetes/kubelet.conf";
const WITH_KUBELET_CONFIG = `${identity.adminTool} node register --kubeconfig ${KUBELET_CONFIG}`;

/** The plugin may not write to the nodes of the cluster; the kubelet of a node may, to its own. */
function explainForbidden(failure: unknown): never {
  if (!isForbidden(failure)) throw failure;
  const details = `run it with the kubeconfig of the kubelet, or of an administrator: ${WITH_KUBELET_CONFIG}`;
  throw new PluginError(failure.kind, failure.message, { details, cause: failure.cause });
}

interface RecordOfHost extends HostToRegister {
  readonly machine: string;
  /** When this machine replaced the one that has registered the name; `undefined` if nothing proves that it did. */
  readonly replacedAt: (before: Node) => Promise<Date | undefined>;
  /** The record with the addresses of this host. `referred`: its name in the orchestrator, if it is recorded. */
  readonly addressed: (before: Node["spec"] | undefined, referred: string | undefined) => Promise<Node["spec"]>;
  /** `undefined`: what is recorded stays. */
  readonly nameInOrchestrator: (before: Node | undefined) => Promise<string | undefined>;
}

const ATTEMPTS = 5;

async function register(
  store: Datastore,
  host: RecordOfHost,
  { now, uuid }: Pick<HostMeans, "now" | "uuid">,
): Promise<Registration> {
  const { name, addressed, machine, agentVersion, nameInOrchestrator } = host;
  const key = NODE.key({ name });
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    const before = entry && NODE.codec.read(entry.value, key);
    const since = await registeredSince(before, host);
    const origin = before?.metadata ?? { name, uid: uuid(), creationTimestamp: now().toISOString() };
    const owner = {
      [MACHINE_ANNOTATION]: machine,
      [MACHINE_SINCE_ANNOTATION]: since ?? now().toISOString(),
      ...(agentVersion === undefined ? {} : { [AGENT_VERSION_ANNOTATION]: agentVersion }),
    };
    const metadata = { ...origin, annotations: { ...origin.annotations, ...owner } };
    const reference = await nameInOrchestrator(before);
    const spec = await addressed(before?.spec, reference);
    const referring = reference === undefined ? spec : withOrchestratorReference(spec, reference);
    const after = requireValid(NODE.codec.make(metadata, referring));
    const value = NODE.codec.write(after, entry?.value);
    if (entry && before && value === NODE.codec.write(before, entry.value)) {
      return { action: "unchanged", revision: entry.revision };
    }
    const written = await store.commit([
      entry ? { kind: "update", key, value, revision: entry.revision } : { kind: "create", key, value },
    ]);
    if (written.ok) return { action: entry ? "updated" : "created", revision: written.revision };
  }
  throw keepsChanging(name);
}

/** When this machine registered the name; `undefined` if it does so now. Fails if another one has it. */
async function registeredSince(
  before: Node | undefined,
  { name, machine, whenTaken, replacedAt }: RecordOfHost,
): Promise<string | undefined> {
  const { [MACHINE_ANNOTATION]: registered, [MACHINE_SINCE_ANNOTATION]: since } = before?.metadata.annotations ?? {};
  if (registered === machine) return since;
  if (before === undefined || registered === undefined || whenTaken === "replace") return undefined;
  const replaced = await replacedAt(before);
  if (replaced === undefined) throw taken(name, registered, machine);
  return replaced.toISOString();
}

function keepsChanging(name: string): PluginError {
  return new PluginError("try-again-later", `Cannot register node ${quoted(name)}: others keep changing it`);
}

function notInCluster(name: string): PluginError {
  return new PluginError("config-invalid", `Cannot use node name ${quoted(name)}: the cluster has no such Node`, {
    details: `set "nodename" in the network config to the name of this host in the cluster`,
  });
}

function unknownMachine(name: string): PluginError {
  return new PluginError(
    "config-invalid",
    `Cannot tell what belongs to this host: no machine has registered node ${quoted(name)}, and its kubelet reports another machine ID or none`,
    { details: `register it with the kubeconfig of the kubelet, or of an administrator: ${WITH_KUBELET_CONFIG}` },
  );
}

function taken(name: string, registered: string, own: string): PluginError {
  return new PluginError(
    "resource-exists",
    `Cannot register node ${quoted(name)}: another machine has registered it (${quoted(registered)}; this one is ${quoted(own)})`,
    { details: "use another name with --name, or --force if this machine replaces the other one" },
  );
}

function requireValid(node: Node): Node {
  const decoded = NODE.codec.decode(node);
  if (decoded.ok) return decoded.value;
  throw new PluginError("resource-invalid", `Cannot register this host: ${formatProblems(decoded.problems)}`);
}
