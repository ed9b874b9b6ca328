/** The IPAM plugin, composed. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { ipamPlugin } from "../ipam/plugin/plugin.ts";
import { runDirectoryOf } from "./agent-socket.ts";
import type { CallMeans } from "./call-means.ts";
import { hostName } from "./host-name.ts";

export async function compose(
  face: PluginFace,
  { environment, stderr, host, enterPhase }: CallMeans,
): Promise<CniPlugin> {
  return ipamPlugin(face, {
    hostName,
    pid: process.pid,
    runDirectory: runDirectoryOf(environment),
    host: await host.ipam(),
    now: () => new Date(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    wait: (milliseconds) => Bun.sleep(milliseconds),
    stderr,
    enterPhase,
  });
}
