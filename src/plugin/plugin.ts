/** The CNI plugin: what each command does. */
import type { PluginFace } from "../cni/face.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { PluginError } from "../errors.ts";
import { add } from "./add.ts";
import { del } from "./del.ts";
import { type Surroundings, withSession } from "./session.ts";

export function cniPlugin(face: PluginFace, surroundings: Surroundings): CniPlugin {
  return {
    ...face,
    add: (call, context) => withSession(surroundings, { call, context }, (session) => add(call, session)),
    del: (call, context) => withSession(surroundings, { call, context }, (session) => del(call, session)),
    check: notYet,
    gc: async () => {},
    status: notYet,
  };
}

async function notYet(): Promise<never> {
  throw new PluginError("not-available", "Cannot serve this command yet");
}
