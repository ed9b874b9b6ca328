/** For the node agent: its calls share open datastores, one queue for the host's lock, and decoded records. */
import { shareDatastores } from "../datastore/shared-datastores.ts";
import type { SocketOpener } from "../linux/netlink-socket.ts";
import { isHostAddress } from "../linux/rtnetlink/host-address.ts";
import { DecodedEntries } from "./facts.ts";
import { type DecodeHints, decodeHints, openHintFile } from "./hint-file.ts";
import { NO_HINTS } from "./hints.ts";
import type { IpamHost } from "./ipam-host.ts";
import { SharedTurns } from "./shared-turns.ts";

/** Each call returns a new one that shares nothing with others. `report`: tells of problems that are no call's own. */
export function shareIpamHost(kernel: SocketOpener, report?: (problem: string) => void): IpamHost {
  const turns = new SharedTurns();
  const decoded = new DecodedEntries();
  const decode = rememberLatestHints();
  return {
    openDatastore: shareDatastores(report),
    openTurn: (path, means) => turns.open(path, means),
    openHints: (path) => openHintFile(path, decode),
    isHostAddress: (address) => isHostAddress(kernel, address),
    decodedEntries: () => decoded,
  };
}

/** Usually the same text is read again. */
function rememberLatestHints(): DecodeHints {
  let latest = { text: "", hints: NO_HINTS };
  return (text) => {
    if (text !== latest.text) latest = { text, hints: decodeHints(text) };
    return latest.hints;
  };
}
