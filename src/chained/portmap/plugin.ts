/** The chained plugin `portmap`: what each CNI command does. Each loads its own part alone. */
import type { PluginFace } from "../../cni/face.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import type { Surroundings } from "./surroundings.ts";

export function portmapPlugin(face: PluginFace, surroundings: Surroundings): CniPlugin {
  return {
    ...face,
    add: async (call) => (await import("./add.ts")).add(call, surroundings),
    del: async (call) => (await import("./del.ts")).del(call, surroundings),
    check: async (call) => (await import("./check.ts")).check(call, surroundings),
    gc: async (call) => (await import("./gc.ts")).gc(call, surroundings),
    status: async () => (await import("./status.ts")).status(surroundings),
  };
}
