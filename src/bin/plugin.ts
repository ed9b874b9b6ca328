/** The CNI plugin, composed. */
import { identity } from "../identity.ts";
import { cniPlugin } from "../plugin/plugin.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

declare const FAULTS: boolean | undefined;

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.product} ${VERSION}`);
    return 0;
  }
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  return runPlugin(
    cniPlugin({
      hostName,
      pid: process.pid,
      runDirectory: process.env[`${identity.environmentPrefix}RUN_DIRECTORY`] ?? identity.runDirectory,
      stateDirectory: identity.stateDirectory,
      now: () => new Date(),
      elapsed: () => performance.now(),
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
