/** Creates the IPAM plugin with its dependencies. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { ipamPlugin } from "../ipam/plugin/plugin.ts";
import { runDirectoryOf } from "./agent-socket.ts";
import type { CallContext } from "./call-context.ts";
import { hostName } from "./host-name.ts";
import { ownMachine } from "./own-machine.ts";

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
