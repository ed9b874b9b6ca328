/** Loads the code of a plugin when it is first called. */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { identity } from "../identity.ts";
import { loadOnce } from "../load-once.ts";
import type { CallContext, ServedPlugin } from "../plugin/call-context.ts";
import { descriptionOf } from "./plugin-descriptions.ts";
import { type PluginPart, programNames } from "./programs.ts";

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

/** For the node agent; `undefined` if there is no such plugin: inherited properties such as `constructor` do not count. */
export function servedPlugin(program: string): ServedPlugin | undefined {
  if (!isPluginPart(program)) return undefined;
  return {
    name: programNames(identity)[program],
    create: async (context) => (await PLUGIN_LOADERS[program]()).createPlugin(descriptionOf(program), context),
  };
}

function isPluginPart(text: string): text is PluginPart {
  return Object.hasOwn(PLUGIN_LOADERS, text);
}
