/**
 * What a call opens and decodes on its way to an address. A process that ends
 * with its call opens and decodes for itself; the calls of an agent that stays
 * share it (shared-ipam-host.ts).
 */
import { type OpenDatastore, openDatastoreUntilExit } from "../datastore/open.ts";
import { DecodedEntries } from "./facts.ts";
import { openHintFile } from "./hint-file.ts";
import type { HintStore } from "./hints.ts";
import { openHostTurn, type Turn, type TurnMeans } from "./host-turn.ts";

export interface IpamHost {
  readonly openDatastore: OpenDatastore;
  openTurn(path: string, means: TurnMeans): Turn;
  openHints(path: string): HintStore;
  /** What was decoded of the datastore's entries so far. */
  decodedEntries(): DecodedEntries;
}

/** For a process that ends with its call. */
export const directIpamHost: IpamHost = {
  openDatastore: openDatastoreUntilExit,
  openTurn: openHostTurn,
  openHints: (path) => openHintFile(path),
  decodedEntries: () => new DecodedEntries(),
};
