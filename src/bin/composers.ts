/** Each plugin, put together when it is called. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import type { CallMeans } from "./call-means.ts";
import type { PluginPart } from "./programs.ts";

interface Composer {
  compose(face: PluginFace, means: CallMeans): Promise<CniPlugin>;
}

export const COMPOSERS: Readonly<Record<PluginPart, () => Promise<Composer>>> = {
  plugin: () => import("./plugin.ts"),
  ipam: () => import("./ipam.ts"),
  hostLocal: () => import("./host-local.ts"),
  portmap: () => import("./portmap.ts"),
  bandwidth: () => import("./bandwidth.ts"),
};
