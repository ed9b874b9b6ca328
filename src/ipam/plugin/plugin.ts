/** The IPAM plugin: what each CNI command does. CNI_NETNS, CNI_IFNAME and CNI_PATH are not needed. */
import type { CniPlugin } from "../../cni/serve.ts";
import { CNI_VERSIONS } from "../../cni/version.ts";
import { identity } from "../../identity.ts";
import { VERSION } from "../../version.ts";
import { add } from "./add.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { type Surroundings, withSession } from "./session.ts";
import { status } from "./status.ts";

export function ipamPlugin(surroundings: Surroundings): CniPlugin {
  return {
    about: `${identity.title} IPAM plugin ${VERSION}`,
    supportedVersions: CNI_VERSIONS,
    requiredVariables: ["CNI_CONTAINERID"],
    add: (call, context) => withSession(surroundings, { call, context }, (session) => add(call, session, surroundings)),
    del: (call, context) => withSession(surroundings, { call, context }, (session) => del(call, session, surroundings)),
    check: (call, context) => withSession(surroundings, { call, context }, (session) => check(call, session)),
    gc: (call, context) => withSession(surroundings, { call, context }, (session) => gc(call, session, surroundings)),
    status: (call, context) => withSession(surroundings, { call, context }, (session) => status(session, surroundings)),
  };
}
