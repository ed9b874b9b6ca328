/** The IPAM plugin: its CNI commands. CNI_NETNS, CNI_IFNAME and CNI_PATH are not required. */
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { openingSessions, type Surroundings } from "../session.ts";
import { add } from "./add.ts";
import { check } from "./check.ts";
import { del } from "./del.ts";
import { gc } from "./gc.ts";
import { status } from "./status.ts";

export function ipamPlugin(description: PluginDescription, surroundings: Surroundings): CniPlugin {
  const inSession = openingSessions(surroundings, { component: "ipam", whenStopped: "close datastore" });
  return {
    ...description,
    requiredVariables: ["CNI_CONTAINERID"],
    add: inSession(add),
    del: inSession(del),
    check: inSession(check),
    gc: inSession(gc),
    status: inSession((_, session) => status(session)),
  };
}
