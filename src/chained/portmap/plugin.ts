/** The chained plugin `portmap`: what each CNI command does. Each loads its own part alone. */
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { loadOnce } from "../../load-once.ts";
import type { Surroundings } from "./surroundings.ts";

const loadAdd = loadOnce(() => import("./add.ts"));
const loadDel = loadOnce(() => import("./del.ts"));

export function portmapPlugin(description: PluginDescription, surroundings: Surroundings): CniPlugin {
  return {
    ...description,
    add: async (call) => (await loadAdd()).add(call, surroundings),
    del: async (call) => (await loadDel()).del(call, surroundings),
    check: async (call) => (await import("./check.ts")).check(call, surroundings),
    gc: async (call) => (await import("./gc.ts")).gc(call, surroundings),
    status: async (call) => (await import("./status.ts")).status(call, surroundings),
  };
}
