/** Creates the bandwidth plugin with its dependencies. */
import { bandwidthPlugin } from "../chained/bandwidth/plugin.ts";
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import type { CallContext } from "../plugin/call-context.ts";
import { callLogOf } from "./call-log.ts";

export async function createPlugin(description: PluginDescription, context: CallContext): Promise<CniPlugin> {
  return bandwidthPlugin(description, { ...callLogOf("bandwidth", context), loadLinks: context.host.links });
}
