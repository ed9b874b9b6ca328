/** Which addresses the containers of this host have, whichever plugin connected them: those of every process's namespace. */
import { readdirSync } from "node:fs";
import { formatAddress } from "../ip/address.ts";
import { placeOf } from "./files.ts";
import { closeNetlinkSocket, type NetlinkSocket } from "./netlink-socket.ts";
import { closeNetns, type Netns, openNetlinkSocketIn, openNetns } from "./netns.ts";
import { isFirstProcessOfMachine } from "./pid-namespace.ts";
import { listAddresses } from "./rtnetlink/address.ts";

/** `undefined` if not all processes of the host can be seen. */
export function containerAddresses(): ReadonlySet<string> | undefined {
  return isFirstProcessOfMachine() ? addressesOfProcesses() : undefined;
}

export function addressesOfProcesses(): ReadonlySet<string> {
  const entered = new Set<string>();
  const addresses = new Set<string>();
  for (const process of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    const path = `/proc/${process}/ns/net`;
    const place = placeOf(path);
    // A process that has ended meanwhile.
    if (place === undefined || entered.has(place)) continue;
    entered.add(place);
    for (const address of addressesIn(path)) addresses.add(address);
  }
  return addresses;
}

function addressesIn(path: string): readonly string[] {
  const netns = openNetns(path);
  if (netns === undefined) return [];
  try {
    return withSocketIn(netns, (socket) => listAddresses(socket).map(({ address }) => formatAddress(address)));
  } finally {
    closeNetns(netns);
  }
}

function withSocketIn<Value>(netns: Netns, work: (socket: NetlinkSocket) => Value): Value {
  const socket = openNetlinkSocketIn(netns, "route");
  try {
    return work(socket);
  } finally {
    closeNetlinkSocket(socket);
  }
}
