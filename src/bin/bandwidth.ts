/** The bandwidth plugin, composed. */
import { bandwidthPlugin } from "../chained/bandwidth/plugin.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`bandwidth of ${identity.product} ${VERSION}`);
    return 0;
  }
  return runPlugin(bandwidthPlugin());
}
