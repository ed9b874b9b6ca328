/** The upkeep of the agent, as `src/agent/upkeep/upkeep-part.ts` orders it: commands of the admin tool, each in a process of its own. */

import { restoreTables } from "../../src/bin/restore-tables.ts";
import { trackedConnections } from "../../src/firewall/tracked-connections.ts";
import { readLinks } from "../../src/ipam/leaks/host-links.ts";
import { netfilterOf } from "../../src/linux/netfilter-access.ts";
import { hostAddresses, sourceTowards } from "../../src/linux/rtnetlink/host-addresses.ts";
import { uplinkMtu } from "../../src/linux/rtnetlink/uplink-mtu.ts";
import { type AdminRun, type AdminSurroundings, runInside } from "../../test/support/admin-context.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { NETWORK_FILE } from "./network-config.ts";
import type { MachineMeans } from "./node-means.ts";

/** Says nothing if the process dies. */
export function runAdminTool(
  args: readonly string[],
  process: SimulatedProcess,
  means: MachineMeans,
): Promise<AdminRun> {
  return process.unlessKilled(runInside(args, surroundingsOf(process, means)));
}

function surroundingsOf(process: SimulatedProcess, means: MachineMeans): AdminSurroundings {
  const { files, name, machineIdentity, bootedAt } = means;
  const kernel = means.kernelFor(process);
  const warn = () => {};
  const [addresses, links, mtu] = [hostAddresses(kernel), readLinks(kernel), uplinkMtu(kernel)];
  return {
    ...{ machineIdentity, hostName: name, signal: process.signal, now: process.now() },
    files: { [NETWORK_FILE]: files.read(NETWORK_FILE) ?? "" },
    wait: (milliseconds) => process.wait(milliseconds),
    openDatastore: async () => means.openStore(process),
    openKubeClient: async () => means.openApi(process),
    hostAddresses: addresses,
    ...(mtu === undefined ? {} : { uplinkMtu: mtu }),
    sourceTowards: (destination, family) => sourceTowards(kernel, destination, family),
    hostLinks: { ...links, bootedAt, isHostNamespace: true },
    replaceFile: async (path, text) => {
      if (files.read(path) === text) return false;
      process.effect(() => files.write(path, text));
      return true;
    },
    restoreTables: (wanted, tell) => restoreTables(kernel, wanted, tell),
    forgetConnections: async (forgotten) => (await trackedConnections(netfilterOf(kernel), warn))?.forget(forgotten),
  };
}
