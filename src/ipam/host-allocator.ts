/** The allocator as every process of a host opens it: with the host's hints and its lock. */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { type Allocator, openAllocator } from "./allocator.ts";
import type { IpamHost } from "./ipam-host.ts";

export interface HostMeans {
  /** The directory of the host's hints and lock. */
  readonly runDirectory: string;
  readonly host: IpamHost;
  readonly now: () => Date;
  readonly random: () => number;
  readonly wait: (milliseconds: number) => Promise<void>;
}

export function openHostAllocator(
  store: Datastore,
  means: HostMeans,
  given: {
    readonly node: string;
    readonly settings: DatastoreSettings;
    readonly warn: (message: string) => void;
  },
): Allocator {
  const { runDirectory, host, now, random, wait } = means;
  const scope = JSON.stringify([given.node, given.settings]);
  const place = `${runDirectory}/ipam/${Bun.hash(scope).toString(16)}`;
  return openAllocator(store, {
    now,
    random,
    wait,
    isHostAddress: host.isHostAddress,
    warn: given.warn,
    hints: host.openHints(`${place}.hints`),
    turn: host.openTurn(`${place}.lock`, { now, random, wait }),
    decoded: host.decodedEntries(),
  });
}
