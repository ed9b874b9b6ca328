/** Creates the CNI plugin with its dependencies. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { runDirectoryOf } from "../config/run-directory.ts";
import { identity } from "../identity.ts";
import { placeOf, readText } from "../linux/files.ts";
import { hostName } from "../linux/host-name.ts";
import { ownMachine } from "../linux/own-machine.ts";
import type { CallContext } from "../plugin/call-context.ts";
import { pluginHostOf } from "../plugin/host.ts";
import { cniPlugin } from "../plugin/plugin.ts";
import type { Surroundings } from "../plugin/session.ts";

export async function createPlugin(description: PluginDescription, context: CallContext): Promise<CniPlugin> {
  return cniPlugin(description, await pluginSurroundings(context));
}

let ownPlace: string | undefined;

function executablePlace(): string | undefined {
  ownPlace ??= placeOf("/proc/self/exe");
  return ownPlace;
}

export async function pluginSurroundings(context: CallContext): Promise<Surroundings> {
  const { environment, stderr, delegateStderr, enterPhase, milliseconds } = context;
  return {
    hostName,
    pid: process.pid,
    executablePlace,
    runDirectory: runDirectoryOf(environment),
    stateDirectory: identity.stateDirectory,
    readText,
    openFolder: async (path) => (await import("../linux/file-folder.ts")).openFolder(path),
    waitForFile: async (path, wait) => (await import("../linux/wait-for-file.ts")).waitForFile(path, wait),
    host: await pluginHostOf(context.host),
    now: () => new Date(),
    elapsed: () => performance.now(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    machineIdentity: ownMachine,
    wait: (milliseconds) => Bun.sleep(milliseconds),
    environment,
    stderr,
    delegateStderr,
    enterPhase,
    milliseconds,
  };
}
