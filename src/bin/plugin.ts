/** The CNI plugin, composed. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { identity } from "../identity.ts";
import { placeOf } from "../linux/files.ts";
import { cniPlugin } from "../plugin/plugin.ts";
import type { Surroundings } from "../plugin/session.ts";
import { runDirectoryOf } from "./agent-socket.ts";
import type { CallMeans } from "./call-means.ts";
import { hostName } from "./host-name.ts";

export async function compose(face: PluginFace, means: CallMeans): Promise<CniPlugin> {
  return cniPlugin(face, pluginSurroundings(means));
}

let ownPlace: string | undefined;

function executablePlace(): string | undefined {
  ownPlace ??= placeOf("/proc/self/exe");
  return ownPlace;
}

export function pluginSurroundings({ environment, stderr, lifetime, enterPhase }: CallMeans): Surroundings {
  return {
    hostName,
    pid: process.pid,
    executablePlace,
    runDirectory: runDirectoryOf(environment),
    stateDirectory: identity.stateDirectory,
    lifetime,
    now: () => new Date(),
    elapsed: () => performance.now(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    wait: (milliseconds) => Bun.sleep(milliseconds),
    stderr,
    enterPhase,
  };
}
