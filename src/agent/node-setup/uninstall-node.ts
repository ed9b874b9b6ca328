/**
 * `uninstall`: removes from this node what `install` and the agent have brought, the network config first. The networks of
 * pods that still run stay, with what they need.
 * `uninstall --keep-files`: for those who remove the files themselves, a package manager for example: only what is in the
 * kernel and in the run directory, and nothing while a container uses it.
 */

import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { hostPortsFolder } from "../../chained/portmap/record-file.ts";
import { runningOwners } from "../../chained/portmap/running-owners.ts";
import type { Environment } from "../../cni/environment.ts";
import { DEFAULT_NODE_NAME_FILE, FLOW_HISTORY_DIRECTORY } from "../../config/config-files.ts";
import { agentDirectory, agentLockPath, runDirectoryOf } from "../../config/run-directory.ts";
import type { Entry } from "../../datastore/datastore.ts";
import { openDatastore } from "../../datastore/open.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { readNodeRecords } from "../../ipam/leaks/node-records.ts";
import { openFolder } from "../../linux/file-folder.ts";
import { lockFile, unlockFile } from "../../linux/flock.ts";
import { directNetfilter } from "../../linux/netfilter-access.ts";
import { ownSockets } from "../../linux/netlink-socket.ts";
import { OWN_PROGRAM } from "../../linux/own-process.ts";
import { ROUTE_PROTOCOL } from "../../linux/rtnetlink/route.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import { renderEmptyBird } from "../../routing/bird/render.ts";
import { POD_MTU_FILE } from "../../routing/pod-mtu.ts";
import type { AgentProcess } from "../agent-process.ts";
import { BIRD_SETTINGS } from "../bgp/bird-settings.ts";
import { connectBird } from "../bgp/control.ts";
import { agentFeatures } from "../features.ts";
import { accountingPath, restoreConnectionAccounting } from "../flows/collector/connection-accounting.ts";
import { ownNetworkFiles, readAgentNetwork } from "../network/agent-network.ts";
import { type NetworkKernel, openKernelNetwork } from "../node-routes/kernel-network.ts";
import { becomeOnlyAgent } from "../only-agent.ts";
import { ETCD_FILE_NAMES } from "./etcd-secrets.ts";
import { knownEntries } from "./known-entries.ts";
import type { InstalledEntry } from "./layout.ts";
import { describeUsers, networkUsers } from "./network-users.ts";
import { NodeFiles } from "./node-files.ts";
import { ownConfigs } from "./other-networks.ts";
import { processesNamed } from "./processes-named.ts";
import { reloadNetworkManager } from "./reload-network-manager.ts";
import { podLinks, removeNetwork, removeTables } from "./remove-network.ts";
import { removeRunDirectory } from "./remove-run-directory.ts";
import { placesIn } from "./settings.ts";
import { isOfNetworkManager } from "./unmanaged-links.ts";

const LOCK_MILLISECONDS = 60_000;
const CLOSE_MILLISECONDS = 5_000;
/** For the kernel to lose the routes of BIRD. */
const SCAN_MILLISECONDS = 500;
/** For the datastore to tell how containers are called. */
const NAMES_MILLISECONDS = 5_000;
const LOCK = `${identity.stateDirectory}/install.lock`;

export async function uninstallNode(own: AgentProcess): Promise<void> {
  const { environment, say } = own;
  await removeFiles(own);
  for (const feature of await agentFeatures()) feature.uninstall(own);
  const kernel = openKernelNetwork(ownSockets);
  try {
    const left = podLinks(kernel);
    if (left.length > 0) {
      say(
        `Pods with a network of ours still run (${left.join(", ")}): tunnels, routes and rules stay; ` +
          "delete these pods and uninstall again, or restart the node",
        {},
        "WARNING",
      );
      return;
    }
    await removeFromKernel(kernel, { environment, say });
  } finally {
    kernel.close();
  }
}

/**
 * Fails, and changes nothing, if a container uses the network ("resource-in-use") or an agent runs. Users are named before
 * the lock is asked for, so that nobody stops an agent for nothing; a container that starts meanwhile is found immediately
 * before anything is deleted.
 */
export async function uninstallWithoutFiles(own: AgentProcess, signal: AbortSignal): Promise<void> {
  const { environment, say } = own;
  const configs = configsOfOurs(placesIn(environment).configDirectory);
  if (configs.length > 0) {
    say(
      `Network configs still name the plugin: ${configs.join(", ")}; ` +
        "delete them, or container runtimes report errors about them",
      {},
      "WARNING",
    );
  }
  const isNew = !existsSync(runDirectoryOf(environment));
  const kernel = openKernelNetwork(ownSockets);
  try {
    await refuseUsers(kernel, own);
    const refused = await becomeOnlyAgent(own, signal);
    if (refused !== undefined) {
      const details = `if an agent runs, stop it first: systemctl stop ${identity.nodeAgent}`;
      throw new PluginError("try-again-later", `Cannot remove the network of this host: ${refused}`, { details });
    }
    try {
      await refuseUsers(kernel, own);
      await removeFromKernel(kernel, own, () => refuseUsers(kernel, own));
    } catch (failure) {
      if (isNew) removeLock(environment);
      throw failure;
    }
  } finally {
    kernel.close();
  }
}

/** With the directories that it was made in, if nothing else is in them. */
function removeLock(environment: Environment): void {
  rmSync(agentLockPath(environment), { force: true });
  removeIfEmpty(agentDirectory(environment));
  removeIfEmpty(runDirectoryOf(environment));
}

async function refuseUsers(kernel: NetworkKernel, own: AgentProcess): Promise<void> {
  const owners = runningOwners(openFolder(hostPortsFolder(runDirectoryOf(own.environment))));
  const users = networkUsers(kernel.addresses().links, owners);
  if (users.length === 0) return;
  throw new PluginError(
    "resource-in-use",
    `Cannot remove the network of this host: ${describeUsers(users, await endpointsHere(own))}`,
    { details: "remove these containers first; until then they keep their network" },
  );
}

function configsOfOurs(directory: string): readonly string[] {
  const files = filesIn(directory).map((name) => ({ name, text: textOrNothing(`${directory}/${name}`) }));
  return ownConfigs(files).map((name) => `${directory}/${name}`);
}

function filesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}

function textOrNothing(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** For the names of containers alone: nothing waits for a datastore that cannot be read. */
async function endpointsHere({ environment, say }: AgentProcess): Promise<readonly Entry[]> {
  const signal = AbortSignal.timeout(NAMES_MILLISECONDS);
  try {
    const network = await readAgentNetwork(() => {}, undefined, ownNetworkFiles(environment));
    if (network === undefined) return [];
    const store = await openDatastore(network.settings, { environment, signal, warn: () => {} });
    try {
      return [...(await readNodeRecords(store, network.node)).endpoints.values()];
    } finally {
      await store.close();
    }
  } catch (failure) {
    say(`Cannot read the names of containers: ${describeFailure(failure)}`, {}, "WARNING");
    return [];
  }
}

/** Tunnels, routes, tables, and the run directory. `beforeDeletion`: once BIRD has ended, which takes a while. */
async function removeFromKernel(
  kernel: NetworkKernel,
  { environment, say }: Pick<AgentProcess, "environment" | "say">,
  beforeDeletion: () => Promise<void> = async () => {},
): Promise<void> {
  const protocols = [ROUTE_PROTOCOL.own, ...(await birdProtocols(environment))];
  await beforeDeletion();
  const refusals = new Set([
    ...removeNetwork(kernel, protocols),
    ...(await directNetfilter.withSocket(async (socket) => removeTables(socket))),
  ]);
  if (refusals.size > 0) throw new PluginError("kernel-refused", `Cannot uninstall: ${[...refusals].join("; ")}`);
  restoreConnectionAccounting(accountingPath(runDirectoryOf(environment)));
  const left = removeRunDirectory(runDirectoryOf(environment));
  if (left.length > 0) say(`Files of others are left: ${left.join(", ")}`, {}, "WARNING");
  say("Removed tunnels, routes and rules");
}

async function removeFiles(own: AgentProcess): Promise<void> {
  const { say } = own;
  if (!existsSync(identity.stateDirectory)) return;
  const lock = await lockFile(LOCK, { limitMilliseconds: LOCK_MILLISECONDS });
  const { notes, changed } = new NodeFiles(identity.stateDirectory).uninstall(() => knownFiles(own));
  for (const note of notes) say(note);
  if (changed.some(isOfNetworkManager)) reloadNetworkManager(own);
  for (const file of [DEFAULT_NODE_NAME_FILE, POD_MTU_FILE, LOCK]) rmSync(file, { force: true });
  rmSync(FLOW_HISTORY_DIRECTORY, { recursive: true, force: true });
  unlockFile(lock);
  removeIfEmpty(identity.stateDirectory);
  say(changed.length === 0 ? "No installation is recorded on this node" : "Removed the installed files");
}

function knownFiles({ environment, programNames }: AgentProcess): readonly InstalledEntry[] {
  const programs = { executable: OWN_PROGRAM, names: programNames };
  return knownEntries({ ...placesIn(environment), etcdFiles: ETCD_FILE_NAMES, programs });
}

/** Ends our BIRD, which then takes its routes along; returns the protocol of its routes if it was killed before. */
async function birdProtocols(environment: Environment): Promise<readonly number[]> {
  const files = birdFiles(runDirectoryOf(environment));
  const control = await connectBird(files.control).catch(() => undefined);
  if (control === undefined) {
    const isKilled = existsSync(files.pid) && processesNamed("bird").length === 0;
    return isKilled ? [ROUTE_PROTOCOL.bird] : [];
  }
  writeFileSync(files.configuration, renderEmptyBird(BIRD_SETTINGS), { mode: 0o600 });
  await control.ask("configure");
  await Bun.sleep(SCAN_MILLISECONDS);
  await control.ask("down").catch(() => {});
  await Promise.race([control.closed, Bun.sleep(CLOSE_MILLISECONDS)]);
  control.close();
  return [];
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {
    // Something of an administrator, or the identity of the machine.
  }
}
