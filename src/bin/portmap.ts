/** The chained plugin for host ports, composed. */
import { portmapPlugin } from "../chained/portmap/plugin.ts";
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { formatLine } from "../log/line.ts";
import type { CallMeans } from "./call-means.ts";

export async function compose(face: PluginFace, { stderr, host }: CallMeans): Promise<CniPlugin> {
  // The plugin has no log options: warnings go to stderr alone.
  const warn = (message: string) => {
    const entry = { time: new Date(), level: "WARNING", processId: process.pid, component: "portmap" } as const;
    stderr(formatLine({ ...entry, message, fields: {} }));
  };
  return portmapPlugin(face, { warn, loadNetfilter: host.netfilter });
}
