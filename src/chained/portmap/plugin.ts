/** The chained plugin `portmap`: what each CNI command does. */
import type { PluginFace } from "../../cni/face.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { add } from "./add.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { status } from "./status.ts";
import type { Surroundings } from "./surroundings.ts";

export function portmapPlugin(face: PluginFace, surroundings: Surroundings): CniPlugin {
  return {
    ...face,
    add: async (call) => add(call, surroundings),
    del: async (call) => del(call, surroundings),
    check: async (call) => check(call),
    gc: async (call) => gc(call, surroundings),
    status: async () => status(),
  };
}
