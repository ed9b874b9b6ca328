/**
 * What a call opens and decodes to assign an address. A process that serves one
 * call opens and decodes for itself; the calls of the node agent share it
 * (shared-ipam-host.ts).
 */
import { type OpenDatastore, openDatastoreUntilExit } from "../datastore/open.ts";
import type { Address } from "../ip/address.ts";
import type { OpenKubeClient } from "../kube/client.ts";
import { ownSockets } from "../linux/netlink-socket.ts";
import { isHostAddress } from "../linux/rtnetlink/host-address.ts";
import { DecodedEntries } from "./facts.ts";
import { openHintFile } from "./hint-file.ts";
import type { HintStore } from "./hints.ts";
import { openHostTurn, type Turn, type TurnMeans } from "./host-turn.ts";

export interface IpamHost {
  readonly openDatastore: OpenDatastore;
  openTurn(path: string, means: TurnMeans): Turn;
  openHints(path: string): HintStore;
  /** Whether the address is one of this host, or of its gateway. Reads the kernel. */
  readonly isHostAddress: (address: Address) => boolean;
  /** The entries of the datastore decoded so far. */
  decodedEntries(): DecodedEntries;
  /** For a datastore on the orchestrator's API; absent if nothing else uses that API. */
  readonly openKubeClient?: OpenKubeClient;
}

/** For a process that serves one call. */
export const directIpamHost: IpamHost = {
  openDatastore: openDatastoreUntilExit,
  openTurn: openHostTurn,
  openHints: (path) => openHintFile(path),
  isHostAddress: (address) => isHostAddress(ownSockets, address),
  decodedEntries: () => new DecodedEntries(),
};
