/**
 * What a call of the plugin uses of its process: one that ends with the call (as src/bin/process-host.ts), or one that stays
 * and serves the calls of others (as src/agent/calls/agent-host.ts).
 */
import { natLockPath } from "../../src/config/run-directory.ts";
import { DecodedEntries } from "../../src/ipam/facts.ts";
import { openHostTurn } from "../../src/ipam/host-turn.ts";
import { SharedTurns } from "../../src/ipam/shared-turns.ts";
import { netfilterOf } from "../../src/linux/netfilter-access.ts";
import { isHostAddress } from "../../src/linux/rtnetlink/host-address.ts";
import { linksOf } from "../../src/linux/rtnetlink/link-access.ts";
import { shareLinks } from "../../src/linux/rtnetlink/shared-links.ts";
import { shareNetfilter } from "../../src/linux/shared-netfilter.ts";
import type { PluginHost } from "../../src/plugin/plugin-host.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { MachineMeans } from "./node-means.ts";

export function hostOfOneCall(process: SimulatedProcess, means: MachineMeans): PluginHost {
  const shared = partsOf(process, means);
  const { kernel, removal } = shared;
  return {
    ...shared.host,
    openDatastore: async () => means.openStore(process),
    openTurn: (path, turn) => openHostTurn(path, { ...turn, locks: shared.locks }),
    decodedEntries: () => new DecodedEntries(),
    links: linksOf(removal),
    netfilter: netfilterOf(kernel),
    openKubeClient: async () => means.openApi(process),
    noticeLostCaller: async () => {},
    isNatFollowed: () => false,
  };
}

/** Its calls share connections, sockets, the queue for the lock and decoded records. */
export function hostOfManyCalls(process: SimulatedProcess, means: MachineMeans): PluginHost {
  const shared = partsOf(process, means);
  const { kernel, removal, locks } = shared;
  const [turns, decoded] = [new SharedTurns(), new DecodedEntries()];
  const [store, api] = [means.openServingStore(process), means.openApi(process)];
  return {
    ...shared.host,
    openDatastore: async () => withoutClosing(store),
    openTurn: (path, turn) => turns.open(path, { ...turn, locks }),
    decodedEntries: () => decoded,
    links: shareLinks(removal),
    netfilter: shareNetfilter(kernel),
    openKubeClient: async () => withoutClosing(api),
    noticeLostCaller: () => process.wait(0),
    isNatFollowed: () => means.files.isLocked(natLockPath({})),
  };
}

function partsOf(process: SimulatedProcess, { files, kernelFor }: MachineMeans) {
  const kernel = kernelFor(process);
  const random = process.random.fork("links");
  return {
    kernel,
    removal: { kernel, random: () => random.next(), wait: process.wait },
    locks: files.locksFor(process),
    host: {
      kernel,
      openHints: (path: string) => files.hintsAt(process, path),
      isHostAddress: (address: Parameters<typeof isHostAddress>[1]) => isHostAddress(kernel, address),
    },
  };
}

/** For one of its users. */
function withoutClosing<Connection extends { close(): Promise<void> }>(connection: Connection): Connection {
  return new Proxy(connection, {
    get(target, name) {
      if (name === "close") return async () => {};
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
