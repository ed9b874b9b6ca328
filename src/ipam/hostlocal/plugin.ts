/** The host-local IPAM plugin: each command is a function that the network plugin can also call in its own process. */
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { hostLocalAdd, hostLocalCheck } from "./add.ts";
import { hostLocalDel, hostLocalGc } from "./release.ts";
import { hostLocalStatus } from "./status.ts";

export function hostLocalPlugin(description: PluginDescription): CniPlugin {
  return {
    ...description,
    // It uses neither CNI_NETNS nor CNI_PATH.
    requiredVariables: ["CNI_CONTAINERID", "CNI_IFNAME"],
    add: (call, { signal }) => hostLocalAdd(call, signal),
    del: (call, { signal }) => hostLocalDel(call, signal),
    check: (call, { signal }) => hostLocalCheck(call, signal),
    gc: (call, { signal }) => hostLocalGc(call, signal),
    status: (call) => hostLocalStatus(call),
  };
}
