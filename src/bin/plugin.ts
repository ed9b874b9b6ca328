/** The CNI plugin, composed. */
import { CNI_VERSIONS } from "../cni/version.ts";
import { identity } from "../identity.ts";
import type { Surroundings } from "../plugin/session.ts";
import { VERSION } from "../version.ts";
import { runPlugin } from "./process.ts";

declare const FAULTS: boolean | undefined;

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.product} ${VERSION}`);
    return 0;
  }
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  const face = { about: `${identity.title} CNI plugin ${VERSION}`, supportedVersions: CNI_VERSIONS };
  return runPlugin(face, async () => (await import("../plugin/plugin.ts")).cniPlugin(face, surroundings()));
}

function surroundings(): Surroundings {
  return {
    hostName,
    pid: process.pid,
    executable: "/proc/self/exe",
    runDirectory: process.env[`${identity.environmentPrefix}RUN_DIRECTORY`] ?? identity.runDirectory,
    stateDirectory: identity.stateDirectory,
    now: () => new Date(),
    elapsed: () => performance.now(),
    random: Math.random,
    uuid: () => crypto.randomUUID(),
    wait: (milliseconds) => Bun.sleep(milliseconds),
    stderr: (text) => void process.stderr.write(text),
  };
}

/** What `os.hostname()` says, without the import of node:os. */
async function hostName(): Promise<string> {
  return (await Bun.file("/proc/sys/kernel/hostname").text()).trim();
}
