/** Creates the chained plugin for host ports with its dependencies. */
import { portmapPlugin } from "../chained/portmap/plugin.ts";
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { runDirectoryOf } from "../config/run-directory.ts";
import type { CallContext } from "../plugin/call-context.ts";
import { callLogOf } from "./call-log.ts";

export async function createPlugin(description: PluginDescription, context: CallContext): Promise<CniPlugin> {
  return portmapPlugin(description, {
    ...callLogOf("portmap", context),
    loadNetfilter: context.host.netfilter,
    runDirectory: runDirectoryOf(context.environment),
    openFolder: async (path) => (await import("../linux/file-folder.ts")).openFolder(path),
  });
}
