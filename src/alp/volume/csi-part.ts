/** The part of the node agent that gives pods with a sidecar the volume in which the sidecar finds the agent. */
import { hostname } from "node:os";
import type { Environment } from "../../cni/environment.ts";
import { runDirectoryOf } from "../../config/run-directory.ts";
import { isMountedReadOnly, mountReadOnly, unmountAll } from "../../linux/mounts.ts";
import { DEFAULT_KUBELET_DIRECTORY, KUBELET_DIRECTORY, NO_KUBELET } from "../../model/kubelet-directory.ts";
import { quoted } from "../../quote.ts";
import type { AgentAccess, SupervisedPart, Wait } from "../agent-access.ts";
import type { SidecarVolumes } from "../feed/sidecar-volumes.ts";
import { PublishedVolumes } from "./published-volumes.ts";
import { removeDriver, serveDriver } from "./serve-driver.ts";
import { VolumeFiles } from "./volume-files.ts";

interface CsiPart {
  /** Volumes of the previous agent are known from the start. */
  readonly volumes: SidecarVolumes;
  /** None if the driver is turned off. */
  readonly parts: readonly SupervisedPart[];
}

const MOUNTS = { mountReadOnly, isMountedReadOnly, unmountAll };

export function csiPart({ environment, say }: AgentAccess, wait: Wait): CsiPart {
  const kubelet = kubeletIn(environment, say);
  const volumes = publishedVolumes(environment, kubelet ?? DEFAULT_KUBELET_DIRECTORY);
  recover(volumes, say);
  if (kubelet === undefined) return { volumes, parts: [] };
  const node = environment["NODE_NAME"] || hostname();
  const log = (message: string, level: "INFO" | "WARNING") => say(message, {}, level);
  const run = (signal: AbortSignal) => serveDriver({ kubelet, node, volumes, wait, log }, signal);
  return { volumes, parts: [{ name: "the CSI driver", run }] };
}

/** Of an agent that does not run. The kubelet cannot unmount a volume of a driver that is gone: then it does not delete the pod. */
export function removeVolumes({ environment, say }: AgentAccess): void {
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

function publishedVolumes(environment: Environment, kubelet: string): PublishedVolumes {
  return new PublishedVolumes(new VolumeFiles({ runDirectory: runDirectoryOf(environment), kubelet }, MOUNTS));
}

/** `undefined` if the driver is turned off. */
function kubeletIn(environment: Environment, say: AgentAccess["say"]): string | undefined {
  const given = environment[KUBELET_DIRECTORY] || DEFAULT_KUBELET_DIRECTORY;
  if (given === NO_KUBELET) return undefined;
  if (given.startsWith("/")) return given.replace(/\/+$/, "");
  const remedy = `use the directory of the kubelet, or ${quoted(NO_KUBELET)}`;
  say(`No CSI driver: the environment variable ${KUBELET_DIRECTORY} is ${quoted(given)}; ${remedy}`, {}, "ERROR");
  return undefined;
}

/** What cannot be recovered does not keep the agent from its other work; the driver tries it again. */
function recover(volumes: PublishedVolumes, say: AgentAccess["say"]): void {
  for (const failure of volumes.recover()) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    say(`Cannot recover a volume of a sidecar; tries again: ${reason}`, {}, "ERROR");
  }
}
