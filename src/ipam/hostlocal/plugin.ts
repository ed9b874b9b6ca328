/** The host-local IPAM plugin: each command is a function that the network plugin can also call in its own process. */
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { type CallLogSurroundings, loggingCalls } from "../../log/call-log.ts";
import { resultAddresses } from "../plugin/result-addresses.ts";
import { hostLocalAdd, hostLocalCheck } from "./add.ts";
import { hostLocalDel, hostLocalGc } from "./release.ts";
import { hostLocalStatus } from "./status.ts";

export function hostLocalPlugin(description: PluginDescription, surroundings: CallLogSurroundings): CniPlugin {
  const logged = loggingCalls(surroundings);
  return {
    ...description,
    // It uses neither CNI_NETNS nor CNI_PATH.
    requiredVariables: ["CNI_CONTAINERID", "CNI_IFNAME"],
    add: logged(async (call, { signal, log }) => {
      const result = await hostLocalAdd(call, signal);
      log.changed({ addresses: resultAddresses(result) });
      return result;
    }),
    del: logged(async (call, { signal, log }) => log.changed({ addresses: await hostLocalDel(call, signal) })),
    check: logged((call, { signal }) => hostLocalCheck(call, signal)),
    gc: logged((call, { signal }) => hostLocalGc(call, signal)),
    status: logged(async (call) => hostLocalStatus(call)),
  };
}
