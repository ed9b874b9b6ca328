/** Creates the host-local IPAM plugin with its dependencies. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { hostLocalPlugin } from "../ipam/hostlocal/plugin.ts";
import type { CallContext } from "../plugin/call-context.ts";
import { callLogOf } from "./call-log.ts";

export async function createPlugin(description: PluginDescription, context: CallContext): Promise<CniPlugin> {
  return hostLocalPlugin(description, callLogOf("host-local", context));
}
