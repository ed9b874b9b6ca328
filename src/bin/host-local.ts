/** The host-local IPAM plugin, composed. */
import { CNI_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`host-local of ${identity.product} ${VERSION}`);
    return 0;
  }
  const face = { about: `host-local IPAM plugin of ${identity.title} ${VERSION}`, supportedVersions: CNI_VERSIONS };
  return runPlugin(face, async () => (await import("../ipam/hostlocal/plugin.ts")).hostLocalPlugin(face));
}
