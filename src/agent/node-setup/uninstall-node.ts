/**
 * `uninstall`: removes from this node what `install` and the agent have brought, the network config first. The networks of
 * pods that still run stay, with what they need.
 */

import { existsSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import type { Environment } from "../../cni/environment.ts";
import { DEFAULT_NODE_NAME_FILE } from "../../config/config-files.ts";
import { runDirectoryOf } from "../../config/run-directory.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
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
import { kubeletIn, publishedVolumes } from "../csi/csi-part.ts";
import { removeDriver } from "../csi/serve-driver.ts";
import { openKernelNetwork } from "../node-routes/kernel-network.ts";
import { ETCD_FILE_NAMES } from "./etcd-secrets.ts";
import { isOfNetworkManager } from "./keep-off.ts";
import { knownEntries } from "./known-entries.ts";
import type { InstalledEntry } from "./layout.ts";
import { NodeFiles } from "./node-files.ts";
import { processesNamed } from "./processes-named.ts";
import { reloadNetworkManager } from "./reload-network-manager.ts";
import { podLinks, removeNetwork, removeTables } from "./remove-network.ts";
import { placesIn } from "./settings.ts";

const LOCK_MILLISECONDS = 60_000;
const CLOSE_MILLISECONDS = 5_000;
/** For the kernel to lose the routes of BIRD. */
const SCAN_MILLISECONDS = 500;
const LOCK = `${identity.stateDirectory}/install.lock`;

export async function uninstallNode(own: AgentProcess): Promise<void> {
  const { environment, say } = own;
  await removeFiles(own);
  removeVolumes(own);
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
    const protocols = [ROUTE_PROTOCOL.own, ...(await birdProtocols(environment))];
    const refusals = [
      ...removeNetwork(kernel, protocols),
      ...(await directNetfilter.withSocket(async (socket) => removeTables(socket))),
    ];
    if (refusals.length > 0) throw new PluginError("kernel-refused", `Cannot uninstall: ${refusals.join("; ")}`);
    rmSync(runDirectoryOf(environment), { recursive: true, force: true });
    say("Removed tunnels, routes and rules");
  } finally {
    kernel.close();
  }
}

/** The kubelet cannot unmount a volume of a driver that is gone: then it does not delete the pod. */
function removeVolumes({ environment, say }: AgentProcess): void {
  const kubelet = kubeletIn(environment, say);
  if (kubelet === undefined) return;
  removeDriver(kubelet);
  const pods = publishedVolumes(environment, kubelet).removeAll();
  if (pods.length === 0) return;
  say(
    `Removed the volumes of sidecars, although these pods have not ended: ${pods.join(", ")}; ` +
      'delete them with "kubectl delete pod --force", or install again',
    {},
    "WARNING",
  );
}

async function removeFiles(own: AgentProcess): Promise<void> {
  const { say } = own;
  if (!existsSync(identity.stateDirectory)) return;
  const lock = await lockFile(LOCK, { limitMilliseconds: LOCK_MILLISECONDS });
  const { notes, changed } = new NodeFiles(identity.stateDirectory).uninstall(() => knownFiles(own));
  for (const note of notes) say(note);
  if (changed.some(isOfNetworkManager)) reloadNetworkManager(own);
  for (const file of [DEFAULT_NODE_NAME_FILE, POD_MTU_FILE, LOCK]) rmSync(file, { force: true });
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
