/** Each plugin, put together when it is called. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { loadOnce } from "../load-once.ts";
import type { CallMeans } from "./call-means.ts";
import type { PluginPart } from "./programs.ts";

interface Composer {
  compose(face: PluginFace, means: CallMeans): Promise<CniPlugin>;
}

export const COMPOSERS: Readonly<Record<PluginPart, () => Promise<Composer>>> = {
  plugin: loadOnce(() => import("./plugin.ts")),
  ipam: loadOnce(() => import("./ipam.ts")),
  hostLocal: loadOnce(() => import("./host-local.ts")),
  portmap: loadOnce(() => import("./portmap.ts")),
  bandwidth: loadOnce(() => import("./bandwidth.ts")),
};

/** Whether it is the name of a plugin, and not that of something which every object inherits. */
export function isPluginPart(text: string): text is PluginPart {
  return Object.hasOwn(COMPOSERS, text);
}
