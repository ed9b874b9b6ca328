/** The admin tool in a process of the simulation: the real commands, with files in a table. */

import { identity } from "../../../src/identity.ts";
import { runInside } from "../../../test/support/admin-context.ts";
import type { SimulatedApi } from "../../datastore/simulated-api.ts";
import type { SimulatedProcess } from "../../schedule/process.ts";
import { asProgram } from "../api/as-program.ts";

export interface ToolEnd {
  /** `undefined`: it was killed. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** `files`: of the directory of the administrator; they outlive the process. */
export function runTool(
  api: SimulatedApi,
  process: SimulatedProcess,
  { args, files }: { readonly args: readonly string[]; readonly files: Map<string, string> },
): Promise<ToolEnd> {
  const { promise, resolve, reject } = Promise.withResolvers<ToolEnd>();
  process.onKill(() => resolve({ code: undefined, stdout: "", stderr: "" }));
  const write = (path: string, text: string) =>
    process.effect(() => {
      const hasChanged = files.get(path) !== text;
      files.set(path, text);
      return hasChanged;
    });
  const { now, elapsed, wait, signal, random, name } = process;
  runInside(args, {
    env: { KUBECONFIG: "/config" },
    hostName: name,
    openKubeClient: async () => asProgram(api.connect(process, name), identity.adminTool),
    openDatastore: async () => api.connectStore(process, name),
    now,
    uuid: () =>
      Array.from({ length: 4 }, () =>
        random
          .below(2 ** 31)
          .toString(16)
          .padStart(8, "0"),
      ).join("-"),
    random: () => random.next(),
    clock: { now: elapsed, wait },
    wait: (milliseconds) => wait(milliseconds),
    signal,
    readFile: async (path) => files.get(path) ?? missing(),
    replaceFile: async (path, text) => write(path, text),
    replacePrivateFile: async (path, text) => void write(path, text),
  }).then(
    (end) => process.isAlive && resolve(end),
    (failure: unknown) => process.isAlive && reject(failure),
  );
  return promise;
}

function missing(): never {
  throw Object.assign(new Error("missing"), { code: "ENOENT" });
}
