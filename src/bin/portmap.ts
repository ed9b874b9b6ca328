/** Creates the chained plugin for host ports with its dependencies. */
import { portmapPlugin } from "../chained/portmap/plugin.ts";
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { formatLine } from "../log/line.ts";
import type { CallContext } from "./call-context.ts";

export async function createPlugin(description: PluginDescription, { stderr, host }: CallContext): Promise<CniPlugin> {
  // The plugin has no log options: its warnings only go to stderr.
  const warn = (message: string) => {
    const entry = { time: new Date(), level: "WARNING", processId: process.pid, component: "portmap" } as const;
    stderr(formatLine({ ...entry, message, fields: {} }));
  };
  return portmapPlugin(description, { warn, loadNetfilter: host.netfilter });
}
