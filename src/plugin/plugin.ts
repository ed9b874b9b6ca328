/** The CNI plugin: what each command does. */
import type { CniPlugin } from "../cni/serve.ts";
import { CNI_VERSIONS } from "../cni/version.ts";
import { PluginError } from "../errors.ts";
import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { add } from "./add.ts";
import { del } from "./del.ts";
import { type Surroundings, withSession } from "./session.ts";

export function cniPlugin(surroundings: Surroundings): CniPlugin {
  return {
    about: `${identity.title} CNI plugin ${VERSION}`,
    supportedVersions: CNI_VERSIONS,
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
