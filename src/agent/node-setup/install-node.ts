/**
 * `install`: brings the plugins and their network config to this node, as the init container of the agent's pod. What can
 * fail elsewhere (the API, the datastore) comes before the first change of a file; the network config comes last.
 */
import { existsSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { reasonOf } from "../../config/config-files.ts";
import { datastoreSettings } from "../../config/datastore-settings.ts";
import { decodeNetworkConfig } from "../../config/decode.ts";
import { agentDirectory } from "../../config/run-directory.ts";
import { openDatastore } from "../../datastore/open.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { initialize } from "../../ipam/initialize.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type KubeMeans, openKubeClient } from "../../kube/client.ts";
import { SERVICE_ACCOUNT_DIRECTORY } from "../../kube/connection.ts";
import { lockFile } from "../../linux/flock.ts";
import { OWN_PROGRAM } from "../../linux/own-process.ts";
import { quoted } from "../../quote.ts";
import type { AgentProcess, Say } from "../agent-process.ts";
import { requestAccountToken } from "./account-token.ts";
import { pathInContainer } from "./container-root.ts";
import { createDefaultResources, defaultResources } from "./default-resources.ts";
import { etcdSecrets } from "./etcd-secrets.ts";
import { pluginKubeconfig } from "./kubeconfig.ts";
import {
  AGENT_NETWORK_LIST,
  etcdFilesDirectory,
  type InstalledEntry,
  kubeconfigPath,
  networkListEntry,
  networkListPath,
  programEntries,
  secretEntry,
} from "./layout.ts";
import { type NodeNetworkList, nodeNetworkList } from "./network-list.ts";
import { NodeFiles } from "./node-files.ts";
import { type ConfigFile, hidingConfigs, isFormerConfig, namesBefore, SET_ASIDE } from "./other-networks.ts";
import { refuseUnmovedStorage } from "./refuse-unmoved-storage.ts";
import { reloadNetworkManager } from "./reload-network-manager.ts";
import { type InstallSettings, readInstallSettings } from "./settings.ts";
import { isOfNetworkManager, UNMANAGED_LINKS_DIRECTORIES, unmanagedLinkEntries } from "./unmanaged-links.ts";

const LOCK_MILLISECONDS = 60_000;
const LOOPBACK = "loopback";

export async function installNode(own: AgentProcess): Promise<void> {
  const { environment, say } = own;
  const settings = readInstallSettings(environment);
  const inContainer = (path: string) => pathInContainer(environment, path) ?? path;
  const secrets = etcdSecrets(inContainer(settings.etcdSecretsDirectory));
  const { managesCni, configDirectory, binDirectory } = settings;
  const directory = etcdFilesDirectory(configDirectory, managesCni);
  const kubeconfig = managesCni ? kubeconfigPath(configDirectory) : `${agentDirectory(environment)}/kubeconfig`;
  const list = readNetworkList(inContainer(settings.networkConfigFile), settings, {
    kubeconfig,
    etcdFiles: Object.fromEntries(secrets.map(({ field, name }) => [field, `${directory}/${name}`])),
  });
  const account = inContainer(SERVICE_ACCOUNT_DIRECTORY);
  const access = { serviceAccountDirectory: account, environment, say };

  const ownAccess = managesCni ? [secretEntry(kubeconfig, await newKubeconfig(settings, access))] : [];
  await prepareDatastore(list, settings, {
    access,
    etcdFiles: Object.fromEntries(secrets.map(({ field, source }) => [field, source])),
  });
  const listPath = managesCni ? networkListPath(configDirectory) : AGENT_NETWORK_LIST;
  const programs = { executable: OWN_PROGRAM, names: own.programNames };
  await writeFiles(own, [
    ...unmanagedLinkEntries(UNMANAGED_LINKS_DIRECTORIES.filter((path) => existsSync(path))),
    ...(managesCni ? programEntries(binDirectory, programs) : []),
    ...secrets.map(({ name, text }) => secretEntry(`${directory}/${name}`, text)),
    ...ownAccess,
    networkListEntry(listPath, list.text),
  ]);
  if (managesCni) settleOthers(settings, say);
}

function readNetworkList(
  file: string,
  { nodeName, networkConfigFile, etcdEndpoints }: InstallSettings,
  files: { readonly kubeconfig: string; readonly etcdFiles: Readonly<Record<string, string>> },
): NodeNetworkList {
  const values = { nodeName, ...files, ...(etcdEndpoints === undefined ? {} : { etcdEndpoints }) };
  return nodeNetworkList(textOf(file, networkConfigFile), networkConfigFile, values);
}

interface PodAccess extends Pick<KubeMeans, "serviceAccountDirectory" | "environment"> {
  readonly say: Say;
}

/** With the account of the pod: the plugin's may not initialize the datastore. */
async function withPodClient<Result>(
  { say, ...access }: PodAccess,
  use: (client: KubeClient) => Promise<Result>,
): Promise<Result> {
  const client = await openKubeClient({}, { ...kubeMeans(say), ...access });
  try {
    return await use(client);
  } finally {
    await client.close();
  }
}

function kubeMeans(say: Say) {
  return {
    warn: (message: string) => say(message, {}, "WARNING"),
    now: () => new Date(),
    elapsed: () => performance.now(),
    program: identity.nodeAgent,
  };
}

async function prepareDatastore(
  { own }: NodeNetworkList,
  settings: InstallSettings,
  {
    access: { say, ...access },
    etcdFiles,
  }: { readonly access: PodAccess; readonly etcdFiles: Readonly<Record<string, string>> },
): Promise<void> {
  const origin = { now: () => new Date(), uuid: () => crypto.randomUUID() };
  const defaults = defaultResources(settings, origin);
  // The files that it names are not on the host yet.
  const decoded = decodeNetworkConfig({ ...own, ...etcdFiles });
  if (!decoded.ok) throw new Error(decoded.problems.map(({ message }) => message).join("; "));
  const datastore = datastoreSettings(decoded.config);
  if (datastore.kind === "orchestrator") await withPodClient({ say, ...access }, refuseUnmovedStorage);
  const store = await openDatastore(datastore, {
    environment: access.environment,
    warn: (message) => say(message, {}, "WARNING"),
    openClient: (_, means) => openKubeClient({}, { ...means, ...access, program: identity.nodeAgent }),
  });
  try {
    const create = async (isNew: boolean) => {
      const created = await createDefaultResources(store, defaults, isNew);
      if (created.length > 0) say(`Created ${created.join(", ")}`);
    };
    const { state } = await initialize(store, origin, () => create(true));
    if (state === "initialized") say("Initialized the datastore");
    // An upgrade replaces the agents while the datastore is locked: it has brought what is needed.
    else if (state === "locked") say("The datastore is locked: nothing is created in it");
    else await create(false);
  } finally {
    await store.close();
  }
}

async function newKubeconfig(settings: InstallSettings, access: PodAccess): Promise<string> {
  const { server, namespace, pluginAccount, nodeName } = settings;
  const authorityFile = `${access.serviceAccountDirectory}/ca.crt`;
  const authority = textOf(authorityFile, `${SERVICE_ACCOUNT_DIRECTORY}/ca.crt`);
  const account = { namespace, name: pluginAccount, node: nodeName };
  const { token } = await withPodClient(access, (client) => requestAccountToken(client, account));
  return pluginKubeconfig({ server, authority, token });
}

async function writeFiles(
  { say, signalProcess }: Pick<AgentProcess, "say" | "signalProcess">,
  entries: readonly InstalledEntry[],
): Promise<void> {
  await lockFile(`${identity.stateDirectory}/install.lock`, { limitMilliseconds: LOCK_MILLISECONDS });
  const { notes, changed } = new NodeFiles(identity.stateDirectory).install(entries);
  for (const note of notes) say(note);
  if (changed.some(isOfNetworkManager)) reloadNetworkManager({ signalProcess });
  const last = entries.at(-1)?.path ?? "";
  say(changed.length === 0 ? `${quoted(last)} is up to date` : `Wrote ${changed.map(quoted).join(", ")}`);
}

function settleOthers({ configDirectory, binDirectory, formerNetworkConfig }: InstallSettings, say: Say): void {
  const own = networkListPath(configDirectory);
  const before = namesBefore(own.slice(configDirectory.length + 1), readdirSync(configDirectory));
  const files = before.map((name) => ({ name, text: textOrNothing(`${configDirectory}/${name}`) }));
  const isFormer = (file: ConfigFile) => isFormerConfig(file, formerNetworkConfig);
  for (const { name } of files.filter(isFormer)) setAside(`${configDirectory}/${name}`, say);
  const others = files.filter((file) => !isFormer(file));
  for (const warning of hidingConfigs(configDirectory, own, others)) say(warning, {}, "WARNING");
  if (existsSync(`${binDirectory}/${LOOPBACK}`)) return;
  say(
    `The plugin ${quoted(`${binDirectory}/${LOOPBACK}`)} is missing, which container runtimes need for every pod: ` +
      'install the package "containernetworking-plugins" or "kubernetes-cni"',
    {},
    "WARNING",
  );
}

/** After ours is in its place: at no moment is there none. */
function setAside(file: string, say: Say): void {
  renameSync(file, `${file}${SET_ASIDE}`);
  say(`${quoted(file)} is the network config of an earlier release: it is now ${quoted(`${file}${SET_ASIDE}`)}`);
}

/** `path`: as the container names the file. */
function textOf(file: string, path: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new PluginError("io-failure", `Cannot install: cannot read ${quoted(path)}: ${reasonOf(cause)}`, {
      details: "mount it in the pod",
      cause,
    });
  }
}

function textOrNothing(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
