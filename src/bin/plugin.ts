/** The CNI plugin, composed. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { identity } from "../identity.ts";
import { placeOf } from "../linux/files.ts";
import { cniPlugin } from "../plugin/plugin.ts";
import type { Surroundings } from "../plugin/session.ts";
import { runDirectoryOf } from "./agent-socket.ts";
import type { CallMeans } from "./call-means.ts";
import { pluginHostOf } from "./host.ts";
import { hostName } from "./host-name.ts";

export async function compose(face: PluginFace, means: CallMeans): Promise<CniPlugin> {
  return cniPlugin(face, await pluginSurroundings(means));
}

let ownPlace: string | undefined;

function executablePlace(): string | undefined {
  ownPlace ??= placeOf("/proc/self/exe");
  return ownPlace;
}

export async function pluginSurroundings(means: CallMeans): Promise<Surroundings> {
  const { environment, stderr, delegateStderr, enterPhase } = means;
  return {
    hostName,
    pid: process.pid,
    executablePlace,
    runDirectory: runDirectoryOf(environment),
    stateDirectory: identity.stateDirectory,
    host: await pluginHostOf(means.host),
    now: () => new Date(),
    elapsed: () => performance.now(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    wait: (milliseconds) => Bun.sleep(milliseconds),
    stderr,
    delegateStderr,
    enterPhase,
  };
}
