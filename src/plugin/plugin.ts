/**
 * The CNI plugin: its commands. ADD and DEL are loaded with it; the others, which
 * are rare, when they are called.
 */
import type { PluginDescription } from "../cni/plugin-description.ts";
import type { CniPlugin } from "../cni/serve.ts";
import { identity } from "../identity.ts";
import { openingSessions } from "../ipam/session.ts";
import { add } from "./add.ts";
import { del } from "./del.ts";
import type { Surroundings } from "./session.ts";

export function cniPlugin(description: PluginDescription, surroundings: Surroundings): CniPlugin {
  // An interrupted ADD needs its datastore to undo its work.
  const inSession = openingSessions(surroundings, { component: identity.product, whenStopped: "keep datastore" });
  return {
    ...description,
    add: inSession(add),
    del: inSession(del),
    check: inSession(async (call, session) => (await import("./check.ts")).check(call, session)),
    gc: inSession(async (call, session) => (await import("./gc.ts")).gc(call, session)),
    status: inSession(async (call, session) => (await import("./status.ts")).status(call, session)),
  };
}
