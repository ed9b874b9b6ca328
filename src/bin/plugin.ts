/** The CNI plugin, composed. */
import type { CniPlugin } from "../cni/serve.ts";
import { CNI_VERSIONS } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.product} ${VERSION}`);
    return 0;
  }
  return runPlugin(plugin);
}

const plugin: CniPlugin = {
  about: `${identity.title} CNI plugin ${VERSION}`,
  supportedVersions: CNI_VERSIONS,
  add: notYet,
  del: async () => {},
  check: notYet,
  gc: async () => {},
  status: notYet,
};

/** DEL and GC have nothing to take away as long as ADD gives nothing. */
async function notYet(): Promise<never> {
  throw new PluginError("not-available", "Cannot serve containers: this build holds no datapath");
}
