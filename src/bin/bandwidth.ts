/** The bandwidth plugin, composed. */
import { CHAINING_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`bandwidth of ${identity.product} ${VERSION}`);
    return 0;
  }
  const face = { about: `bandwidth plugin of ${identity.title} ${VERSION}`, supportedVersions: CHAINING_VERSIONS };
  return runPlugin(face, async () => (await import("../chained/bandwidth/plugin.ts")).bandwidthPlugin(face));
}
