/** The CNI plugin, composed. */
import type { Answer } from "../cni/answer.ts";
import { CNI_VERSIONS, NEWEST_VERSION } from "../cni/version.ts";
import { identity } from "../identity.ts";
import type { Surroundings } from "../plugin/session.ts";
import { VERSION } from "../version.ts";
import { hostName } from "./host-name.ts";
import { tracePhases } from "./phases.ts";
import { endProcess, runPlugin, writeLog } from "./process.ts";
import { forgetProxies } from "./proxies.ts";

declare const FAULTS: boolean | undefined;

export async function run(args: readonly string[]): Promise<number> {
  if (args[0] === "-v") {
    console.log(`${identity.product} ${VERSION}`);
    return 0;
  }
  if (typeof FAULTS !== "undefined" && FAULTS) (await import("./crash-points.ts")).armCrashPoints();
  if (args[0] === "-t") return endProcess(await connectionTest());
  const face = { about: `${identity.title} CNI plugin ${VERSION}`, supportedVersions: CNI_VERSIONS };
  return runPlugin(face, async () => (await import("../plugin/plugin.ts")).cniPlugin(face, surroundings()));
}

/** Reads a network config from stdin; says nothing, or one CNI error. */
async function connectionTest(): Promise<Answer> {
  const [{ errorAnswer, SILENT_SUCCESS }, { parseJsonObject }, { testConnection }] = await Promise.all([
    import("../cni/answer.ts"),
    import("../cni/json.ts"),
    import("../plugin/connection-test.ts"),
  ]);
  forgetProxies();
  try {
    await testConnection(parseJsonObject(await Bun.stdin.bytes(), "the network config"), surroundings());
    return SILENT_SUCCESS;
  } catch (failure) {
    return errorAnswer(failure, NEWEST_VERSION);
  }
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
    stderr: writeLog,
    enterPhase: tracePhases(),
  };
}
