import { DEFAULT_NODE_NAME_FILE, readNodeName } from "../../config/config-files.ts";
import { findInstalledNetwork, type InstalledNetwork } from "../../config/installed-network.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { isOfKubelet, wantedNode } from "../../ipam/node-machine.ts";
import { decodeNode } from "../../ipam/records.ts";
import { isForbidden } from "../../kube/require-ok.ts";
import { AGENT_VERSION_ANNOTATION } from "../../model/agent-version-annotation.ts";
import { NODE } from "../../model/kinds.ts";
import { MACHINE_ANNOTATION, MACHINE_SINCE_ANNOTATION } from "../../model/machine-annotation.ts";
import type { Node } from "../../model/node.ts";
import { orchestratorReference, withOrchestratorReference } from "../../model/node-reference.ts";
import { formatProblems } from "../../model/problem.ts";
import { quoted } from "../../quote.ts";
import { type Command, type Context, EXIT_OK, type Given } from "../command.ts";
import { withNewDatastore } from "../datastore/open.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { readOrExplain } from "../resources/unreadable-remedy.ts";
import { raiseClusterVersion } from "../version/raise-cluster-version.ts";
import { nameOfNode } from "./node-name.ts";
import { findOrchestratorName } from "./orchestrator-name.ts";
import { withHostAddresses } from "./registered-addresses.ts";

export const nodeRegister: Command = {
  kind: "command",
  name: "register",
  summary: "Create or update the Node resource of this host",
  description: [
    "The name is the one that the plugins use: that of the installed network config or its node name file, otherwise the",
    "host name in lower case. Its addresses are found by the methods that ipv4AddressDetection and ipv6AddressDetection of",
    "NodeAgentConfiguration name; the usual one, first-found, prefers links with a default route.",
    "Labels and other fields of an existing Node are kept.",
    "On the orchestrator's API the agent (--for-agent) checks that the Node is this machine's, and adds only its release.",
    "The identity of this machine is recorded: plugins refuse to work under a node name that another machine has registered.",
    "On etcd, the name of this host in the orchestrator is recorded, if the network config gives access to the orchestrator's API and",
    "the API has a Node of that name: labels are then copied from it, and this Node is deleted with it (see docs/controllers.md).",
    "The agent does not create the Node while that API cannot be reached or has no such Node, for example because it was deleted:",
    "without the name, nobody would delete it.",
    "For the agent, the node name file and the release of the agent are written too, and the version of the cluster is raised if",
    "all nodes have it.",
  ].join("\n"),
  options: [
    { name: "name", value: "NAME", summary: "Register under this name" },
    { name: "force", summary: "Replace the machine that has registered the name" },
    { name: "for-agent", summary: "Do nothing without an installed network config, and print only changes" },
  ],
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "node register", does: "Register this host, so that it can be labelled and selected by pools" },
  ],
  async run(context, given) {
    const isForAgent = given.switches.has("for-agent");
    const installed = await findNetwork(context, given);
    if (isForAgent && installed === undefined) return EXIT_OK;
    const name =
      isForAgent && installed !== undefined
        ? await agentNodeName(installed, context)
        : await nameOfNode(context, given);
    const machine = await context.machineIdentity();
    const whenTaken = given.switches.has("force") ? "replace" : "refuse";
    const agentVersion = isForAgent ? { agentVersion: context.version } : {};
    return withNewDatastore(context, given, async (store, { kind }) => {
      const nameIn = async (before: Node | undefined) => {
        if (kind !== "etcd" || installed === undefined) return undefined;
        const recorded = before && orchestratorReference(before.spec);
        // Nobody would delete a record without the name: that of a node which is deleted before the agent comes to add
        // it, or which was deleted and runs on.
        const isRequired = isForAgent && before === undefined;
        return findOrchestratorName(installed.decoded.config, { node: name, recorded, isRequired }, context);
      };
      const addressed = (before: Node["spec"], referred: string | undefined) =>
        withHostAddresses(before, { store, context, name, referred, kind, installed });
      const host = { name, addressed, machine, whenTaken, ...agentVersion, nameInOrchestrator: nameIn } as const;
      const isOfCluster = isForAgent && kind === "orchestrator";
      const code = await forEachResource(isForAgent ? printingChanges(context) : context, given, {
        all: [{ kind: NODE, name: { name } }],
        act: () => (isOfCluster ? confirm(store, host) : register(store, host, context).catch(explainForbidden)),
      });
      if (code === EXIT_OK && isForAgent) await raiseVersion(store, context).catch(ignoreForbidden);
      return code;
    });
  },
};

/** An unusable config does not matter to a host that is registered under a given name. */
async function findNetwork(context: Context, given: Given): Promise<InstalledNetwork | undefined> {
  try {
    return await findInstalledNetwork(context);
  } catch (failure) {
    if (!given.values.has("name") || !(failure instanceof PluginError)) throw failure;
    return undefined;
  }
}

/** Writes the name to the file where plugins look for it, also if the datastore cannot be reached now. */
async function agentNodeName({ decoded }: InstalledNetwork, context: Context): Promise<string> {
  const { node } = decoded.config;
  const name = await readNodeName({ node: { ...node, nameFileOptional: true } }, () => context.hostName());
  await context.replaceFile(node.nameFile ?? DEFAULT_NODE_NAME_FILE, `${name}\n`);
  return name;
}

async function raiseVersion(store: Datastore, { version, stdout }: Context): Promise<void> {
  const raised = await raiseClusterVersion(store, version);
  if (raised !== undefined) stdout(`The agents of all nodes have ${raised}: it is the version of the cluster now\n`);
}

/**
 * A node of the cluster belongs to its kubelet: the agent only adds its release, if its role allows it. The kubelet writes
 * to the node as well, above all when the network has just become ready: then it is read again.
 */
async function confirm(store: Datastore, host: ThisHost): Promise<ActionResult> {
  for (let attempt = 1; ; attempt += 1) {
    const result = await confirmOnce(store, host);
    if (result !== "changed meanwhile") return result;
    if (attempt === ATTEMPTS) throw keepsChanging(host.name);
  }
}

async function confirmOnce(
  store: Datastore,
  { name, machine, agentVersion }: ThisHost,
): Promise<ActionResult | "changed meanwhile"> {
  const { answers } = await store.read([wantedNode(name)]);
  const entry = answers[0]?.[0];
  if (entry === undefined) throw notInCluster(name);
  const node = readOrExplain(entry, decodeNode);
  const registered = node.machine;
  if (registered !== undefined && registered !== machine) throw taken(name, registered, machine);
  if (registered === undefined && !isOfKubelet(node, machine)) throw unknownMachine(name);
  const unchanged: ActionResult = { action: "unchanged", revision: entry.revision };
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

function printingChanges(context: Context): Context {
  const stdout = (text: string) => {
    if (!text.endsWith(" unchanged\n")) context.stdout(text);
  };
  return { ...context, stdout };
}

interface ThisHost {
  readonly name: string;
  /** The record with the addresses of this host. `referred`: its name in the orchestrator, if it is recorded. */
  readonly addressed: (before: Node["spec"], referred: string | undefined) => Promise<Node["spec"]>;
  readonly machine: string;
  /** If another machine has registered the name. */
  readonly whenTaken: "refuse" | "replace";
  /** Absent if no agent registers it. */
  readonly agentVersion?: string;
  /** `undefined`: what is recorded stays. */
  readonly nameInOrchestrator: (before: Node | undefined) => Promise<string | undefined>;
}

const ATTEMPTS = 5;

async function register(
  store: Datastore,
  { name, addressed, machine, whenTaken, agentVersion, nameInOrchestrator }: ThisHost,
  { now, uuid }: Pick<Context, "now" | "uuid">,
): Promise<ActionResult> {
  const key = NODE.key({ name });
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    const entry = (await store.read([{ kind: "key", key }])).answers[0]?.[0];
    const before = entry && readOrExplain(entry, ({ value }) => NODE.codec.read(value, key));
    const registered = before?.metadata.annotations?.[MACHINE_ANNOTATION];
    if (registered !== undefined && registered !== machine && whenTaken === "refuse")
      throw taken(name, registered, machine);
    const origin = before?.metadata ?? { name, uid: uuid(), creationTimestamp: now().toISOString() };
    const since = registered === machine ? origin.annotations?.[MACHINE_SINCE_ANNOTATION] : undefined;
    const owner = {
      [MACHINE_ANNOTATION]: machine,
      [MACHINE_SINCE_ANNOTATION]: since ?? now().toISOString(),
      ...(agentVersion === undefined ? {} : { [AGENT_VERSION_ANNOTATION]: agentVersion }),
    };
    const metadata = { ...origin, annotations: { ...origin.annotations, ...owner } };
    const reference = await nameInOrchestrator(before);
    const spec = await addressed(before?.spec ?? {}, reference);
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
