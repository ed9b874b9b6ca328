/** Creates the host-local IPAM plugin. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { hostLocalPlugin } from "../ipam/hostlocal/plugin.ts";

export async function createPlugin(description: PluginDescription): Promise<CniPlugin> {
  return hostLocalPlugin(description);
}
