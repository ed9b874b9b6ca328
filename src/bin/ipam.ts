/** Creates the IPAM plugin with its dependencies. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { runDirectoryOf } from "../config/run-directory.ts";
import { ipamPlugin } from "../ipam/plugin/plugin.ts";
import { hostName } from "../linux/host-name.ts";
import { ownMachine } from "../linux/own-machine.ts";
import type { CallContext } from "../plugin/call-context.ts";

export async function createPlugin(
  description: PluginDescription,
  { environment, stderr, host, enterPhase, milliseconds }: CallContext,
): Promise<CniPlugin> {
  return ipamPlugin(description, {
    hostName,
    pid: process.pid,
    runDirectory: runDirectoryOf(environment),
    host: await host.ipam(),
    now: () => new Date(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    machineIdentity: ownMachine,
    wait: (milliseconds) => Bun.sleep(milliseconds),
    environment,
    stderr,
    enterPhase,
    milliseconds,
  });
}
