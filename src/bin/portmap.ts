/** The chained plugin for host ports, composed. */
import { CHAINING_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { runPlugin, writeLog } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`portmap of ${identity.product} ${VERSION}`);
    return 0;
  }
  const face = { about: `portmap plugin of ${identity.title} ${VERSION}`, supportedVersions: CHAINING_VERSIONS };
  return runPlugin(face, async () => {
    const [{ portmapPlugin }, { formatLine }] = await Promise.all([
      import("../chained/portmap/plugin.ts"),
      import("../log/line.ts"),
    ]);
    // The plugin has no log options: warnings go to stderr alone.
    const warn = (message: string) => {
      const entry = { time: new Date(), level: "WARNING", processId: process.pid, component: "portmap" } as const;
      writeLog(formatLine({ ...entry, message, fields: {} }));
    };
    return portmapPlugin(face, { warn });
  });
}
