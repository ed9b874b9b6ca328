/** The IPAM plugin, composed. */
import { CNI_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import type { Surroundings } from "../ipam/plugin/session.ts";
import { VERSION } from "../version.ts";
import { hostName } from "./host-name.ts";
import { runPlugin, writeLog } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.ipamType} ${VERSION}`);
    return 0;
  }
  const face = { about: `${identity.title} IPAM plugin ${VERSION}`, supportedVersions: CNI_VERSIONS };
  return runPlugin(face, async () => {
    const [{ ipamPlugin }, means] = await Promise.all([import("../ipam/plugin/plugin.ts"), surroundings()]);
    return ipamPlugin(face, means);
  });
}

async function surroundings(): Promise<Surroundings> {
  return {
    hostName: await hostName(),
    pid: process.pid,
    runDirectory: process.env[`${identity.environmentPrefix}RUN_DIRECTORY`] ?? identity.runDirectory,
    now: () => new Date(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    wait: (milliseconds) => Bun.sleep(milliseconds),
    stderr: writeLog,
  };
}
