/** The host-local IPAM plugin, composed. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { hostLocalPlugin } from "../ipam/hostlocal/plugin.ts";

export async function compose(face: PluginFace): Promise<CniPlugin> {
  return hostLocalPlugin(face);
}
