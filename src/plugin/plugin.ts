/**
 * The CNI plugin: what each command does. ADD and DEL are loaded with it; the
 * others, which are rare, when they are called.
 */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { add } from "./add.ts";
import { del } from "./del.ts";
import { type Surroundings, withSession } from "./session.ts";

export function cniPlugin(face: PluginFace, surroundings: Surroundings): CniPlugin {
  return {
    ...face,
    add: (call, context) => withSession(surroundings, { call, context }, (session) => add(call, session)),
    del: (call, context) => withSession(surroundings, { call, context }, (session) => del(call, session)),
    check: async (call, context) => {
      const { check } = await import("./check.ts");
      await withSession(surroundings, { call, context }, (session) => check(call, session));
    },
    gc: async (call, context) => {
      const { gc } = await import("./gc.ts");
      await withSession(surroundings, { call, context }, (session) => gc(call, session));
    },
    status: async (call, context) => {
      const { status } = await import("./status.ts");
      await withSession(surroundings, { call, context }, (session) => status(call, session));
    },
  };
}
