/** The IPAM plugin: what each CNI command does. CNI_NETNS, CNI_IFNAME and CNI_PATH are not looked at. */
import type { PluginFace } from "../../cni/face.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { add } from "./add.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { type Surroundings, withSession } from "./session.ts";
import { status } from "./status.ts";

export function ipamPlugin(face: PluginFace, surroundings: Surroundings): CniPlugin {
  return {
    ...face,
    requiredVariables: ["CNI_CONTAINERID"],
    add: (call, context) => withSession(surroundings, { call, context }, (session) => add(call, session, surroundings)),
    del: (call, context) => withSession(surroundings, { call, context }, (session) => del(call, session, surroundings)),
    check: (call, context) => withSession(surroundings, { call, context }, (session) => check(call, session)),
    gc: (call, context) => withSession(surroundings, { call, context }, (session) => gc(call, session, surroundings)),
    status: (call, context) => withSession(surroundings, { call, context }, (session) => status(session, surroundings)),
  };
}
