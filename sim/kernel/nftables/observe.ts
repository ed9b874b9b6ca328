/** What a program sees of the rulesets of a namespace, through the product's own readers. For tests. */
import type { MessageCursor } from "../../../src/linux/netlink/message-reader.ts";
import { drain, joinGroups, portOf } from "../../../src/linux/netlink-group.ts";
import { closeNetlinkSocket, type NetlinkSocket, type SocketOpener } from "../../../src/linux/netlink-socket.ts";
import { readGeneration, tryCommit } from "../../../src/linux/nftables/commit.ts";
import { TableMonitor } from "../../../src/linux/nftables/monitor.ts";
import {
  findElements,
  listAllChains,
  listElements,
  listRuleCounts,
  listRules,
  listSets,
  listTables,
} from "../../../src/linux/nftables/read.ts";
import type { NftChange } from "../../../src/linux/nftables/ruleset.ts";
import type { NftSet } from "../../../src/linux/nftables/set.ts";
import * as wire from "../../../src/linux/nftables/wire.ts";

const CHANGES = 7;
const ROOM = 4 * 1024 * 1024;

/** Applies the batches one after another; returns what could be seen after each of them, as text. */
export function observe(kernel: SocketOpener, batches: readonly (readonly NftChange[])[]): readonly string[] {
  const socket = kernel.openSocket("netfilter");
  const listener = kernel.openSocket("netfilter");
  joinGroups(listener, [CHANGES], ROOM);
  const monitor = new TableMonitor(kernel, { family: "inet", name: "x" }, 0);
  try {
    return batches.map((batch) => {
      const refusals = tryCommit(socket, batch).map(({ change, error }) => [
        change === undefined ? -1 : batch.indexOf(change),
        error.errno,
      ]);
      const noticed = monitor.read().kind;
      return text({ refusals, noticed, events: eventsOf(listener, portOf(socket)), ...rulesetOf(socket) });
    });
  } finally {
    monitor.close();
    closeNetlinkSocket(listener);
    closeNetlinkSocket(socket);
  }
}

/** Everything that is in the namespace. */
export function rulesetOf(socket: NetlinkSocket) {
  const tables = listTables(socket);
  return {
    generation: readGeneration(socket),
    tables,
    chains: listAllChains(socket),
    content: tables.map((table) => ({
      table: `${table.family} ${table.name}`,
      rules: listRules(socket, table),
      counts: listRuleCounts(socket, table),
      sets: listSets(socket, table).map((set) => ({ set, ...elementsOf(socket, table, set) })),
    })),
  };
}

function elementsOf(socket: NetlinkSocket, table: Parameters<typeof listElements>[1], set: NftSet) {
  const elements = listElements(socket, table, set.name);
  const keys = elements.slice(0, 3).map(({ key }) => key);
  // Only the order of ranges is that of their keys.
  const isOrdered = set.holdsIntervals === true && set.key.length === 1;
  return {
    elements: isOrdered ? elements : elements.map(text).toSorted(),
    found: isOrdered ? findElements(socket, table, set.name, keys) : [],
  };
}

/** Several about elements of the same set in a row count as one. */
function eventsOf(listener: NetlinkSocket, port: number): readonly string[] {
  const events: string[] = [];
  drain(listener, (message) => {
    const event = `${message.port === port ? "own" : "foreign"} ${describe(message)}`;
    const isAboutElements = message.type === wire.MESSAGE.newElement || message.type === wire.MESSAGE.deleteElement;
    if (!isAboutElements || events.at(-1) !== event) events.push(event);
  });
  return events;
}

function describe(message: MessageCursor): string {
  const names = Object.entries(wire.MESSAGE).find(([, type]) => type === message.type);
  const attributes = message.attributes(wire.HEADER_LENGTH);
  const texts: string[] = [];
  while (attributes.next()) if (attributes.type <= 2 && attributes.length > 4) texts.push(attributes.text());
  return `${names?.[0]} ${message.view.getUint8(message.start)} ${texts.join(" ")}`;
}

export function text(value: unknown): string {
  return JSON.stringify(value, (_key, each: unknown) => {
    if (each instanceof Uint8Array) return each.toHex();
    return typeof each === "bigint" ? Number(each) : each;
  });
}
