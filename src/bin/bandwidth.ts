/** The bandwidth plugin, composed. */
import { bandwidthPlugin } from "../chained/bandwidth/plugin.ts";
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import type { CallMeans } from "./call-means.ts";

export async function compose(face: PluginFace, { host }: CallMeans): Promise<CniPlugin> {
  return bandwidthPlugin(face, host.links);
}
