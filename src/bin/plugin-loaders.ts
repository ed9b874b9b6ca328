/** Loads the code of a plugin when it is first called. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { loadOnce } from "../load-once.ts";
import type { CallContext } from "./call-context.ts";
import type { PluginPart } from "./programs.ts";

interface PluginModule {
  createPlugin(description: PluginDescription, context: CallContext): Promise<CniPlugin>;
}

export const PLUGIN_LOADERS: Readonly<Record<PluginPart, () => Promise<PluginModule>>> = {
  plugin: loadOnce(() => import("./plugin.ts")),
  ipam: loadOnce(() => import("./ipam.ts")),
  hostLocal: loadOnce(() => import("./host-local.ts")),
  portmap: loadOnce(() => import("./portmap.ts")),
  bandwidth: loadOnce(() => import("./bandwidth.ts")),
};

/** Whether it names a plugin; inherited properties such as `constructor` do not count. */
export function isPluginPart(text: string): text is PluginPart {
  return Object.hasOwn(PLUGIN_LOADERS, text);
}
