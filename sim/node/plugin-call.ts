/** One call of the product's plugin in a simulated process, from the environment and stdin to its reply. */
import type { Reply } from "../../src/cni/reply.ts";
import { serve } from "../../src/cni/serve.ts";
import { CNI_VERSIONS } from "../../src/cni/version.ts";
import { identity } from "../../src/identity.ts";
import { cniPlugin } from "../../src/plugin/plugin.ts";
import type { PluginHost } from "../../src/plugin/plugin-host.ts";
import type { Surroundings } from "../../src/plugin/session.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { type MachineMeans, uuidsOf } from "./node-means.ts";

export interface GivenCall {
  readonly environment: Readonly<Record<string, string>>;
  /** The network config. */
  readonly stdin: string;
}

/** Says nothing if the process dies. */
export function callPlugin(
  call: GivenCall,
  process: SimulatedProcess,
  given: { readonly means: MachineMeans; readonly host: PluginHost; readonly log: (text: string) => void },
): Promise<Reply> {
  const description = { about: identity.title, supportedVersions: CNI_VERSIONS };
  const plugin = cniPlugin(description, surroundingsOf(process, given));
  const environment = { CNI_PATH: "/opt/cni/bin", ...call.environment };
  const readStdin = async () => new TextEncoder().encode(call.stdin);
  const { signal } = process;
  return process.unlessKilled(serve({ env: environment, readStdin, isOwnNetns: async () => false, signal }, plugin));
}

function surroundingsOf(
  process: SimulatedProcess,
  {
    means,
    host,
    log,
  }: { readonly means: MachineMeans; readonly host: PluginHost; readonly log: (text: string) => void },
): Surroundings {
  const { name, files, machineIdentity } = means;
  const startedAt = process.elapsed();
  const random = process.random.fork("call");
  return {
    host,
    hostName: async () => name,
    pid: 1,
    executablePlace: () => undefined,
    runDirectory: identity.runDirectory,
    stateDirectory: identity.stateDirectory,
    readText: (path) => files.read(path),
    openFolder: async (path) => files.openFolder(process, path),
    waitForFile: (path, wait) => files.waitForFile(process, path, wait),
    now: process.now,
    elapsed: process.elapsed,
    random: () => random.next(),
    uuid: uuidsOf(process),
    machineIdentity: () => machineIdentity,
    wait: (milliseconds) => process.wait(milliseconds),
    environment: {},
    stderr: log,
    enterPhase: () => {},
    milliseconds: () => process.elapsed() - startedAt,
  };
}
