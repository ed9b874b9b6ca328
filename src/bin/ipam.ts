/** The IPAM plugin, composed. */
import { identity } from "../identity.ts";
import { ipamPlugin } from "../ipam/plugin/plugin.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.ipamType} ${VERSION}`);
    return 0;
  }
  return runPlugin(
    ipamPlugin({
      hostName: await hostName(),
      pid: process.pid,
      runDirectory: process.env[`${identity.environmentPrefix}RUN_DIRECTORY`] ?? identity.runDirectory,
      now: () => new Date(),
      random: Math.random,
      uuid: () => crypto.randomUUID(),
      wait: (milliseconds) => Bun.sleep(milliseconds),
      stderr: (text) => void process.stderr.write(text),
    }),
  );
}

/** What `os.hostname()` says, without the import of node:os. */
async function hostName(): Promise<string> {
  return (await Bun.file("/proc/sys/kernel/hostname").text()).trim();
}
