/** The host-local IPAM plugin, composed. */
import { identity } from "../identity.ts";
import { hostLocalPlugin } from "../ipam/hostlocal/plugin.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`host-local of ${identity.product} ${VERSION}`);
    return 0;
  }
  return runPlugin(hostLocalPlugin(`host-local IPAM plugin of ${identity.title} ${VERSION}`));
}
