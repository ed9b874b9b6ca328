/**
 * How long it takes from the commit of a new block on one node until another node's kernel has the route to it. Runs in the
 * network of the datastore, as a process of its own: `bun block-times.process.ts PLAN`, which prints `BlockTimes`.
 */

import type { DatastoreSettings } from "../../src/config/datastore-settings.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { blockSize } from "../../src/ip/block.ts";
import { formatPrefix, type Prefix, parsePrefix } from "../../src/ip/prefix.ts";
import { ownSockets } from "../../src/linux/netlink-socket.ts";
import { type RouteEvent, watchRoutes } from "../../src/linux/rtnetlink/route-monitor.ts";
import { hostAffinity, writeBlock } from "../../src/model/ipam-block.ts";
import { blockKey } from "../../src/model/keys.ts";
import { insideNetns } from "../../test/support/namespace-sockets.ts";

export interface BlockTimesPlan {
  readonly settings: DatastoreSettings;
  /** The node that the blocks belong to. */
  readonly node: string;
  /** The path of the network namespace of the other node. */
  readonly watched: string;
  /** The first rounds are not counted. */
  readonly warmUpRounds: number;
  /** Blocks that belong to nobody yet; one for each round. */
  readonly blocks: readonly string[];
}

export interface BlockTimes {
  /** Milliseconds from the request to the datastore until the route was there. */
  readonly fromRequest: readonly number[];
  /** Milliseconds from the datastore's reply; below zero if the route was there first. */
  readonly fromReply: readonly number[];
}

const PAUSE_MILLISECONDS = 20;
const LIMIT_MILLISECONDS = 10_000;

const { settings, warmUpRounds, node, watched, blocks } = JSON.parse(process.argv[2] ?? "") as BlockTimesPlan;
const store = await openDatastore(settings);
const stop = new AbortController();
const waiting = new Map<string, (time: number) => void>();
void follow();
const fromRequest: number[] = [];
const fromReply: number[] = [];
for (const [round, text] of blocks.entries()) {
  const block = parsePrefix(text);
  if (block === undefined) throw new Error(`"${text}" is not a prefix`);
  const arrived = arrivalOf("put", text);
  const requested = performance.now();
  const written = await store.commit([{ kind: "create", key: blockKey(block), value: emptyBlock(block) }]);
  const replied = performance.now();
  if (!written.ok) throw new Error(`Cannot write block ${text}: ${written.reason}`);
  const time = await arrived;
  if (round >= warmUpRounds) {
    fromRequest.push(time - requested);
    fromReply.push(time - replied);
  }
  await remove(block);
  await Bun.sleep(PAUSE_MILLISECONDS);
}
stop.abort();
await store.close();
const times: BlockTimes = { fromRequest, fromReply };
console.log(JSON.stringify(times));
process.exit(0);

async function remove(block: Prefix): Promise<void> {
  const gone = arrivalOf("delete", formatPrefix(block));
  const key = blockKey(block);
  const { answers } = await store.read([{ kind: "key", key }]);
  await store.commit([{ kind: "delete", key, revision: answers[0]?.[0]?.revision ?? "" }]);
  await gone;
}

function emptyBlock(cidr: Prefix): string {
  const free = Array.from({ length: blockSize(cidr) }, (_, index) => index);
  return writeBlock({
    ...{ cidr, affinity: hostAffinity(node), allocations: free.map(() => undefined), unallocated: free },
    ...{ attributes: [], sequenceNumber: 1n, sequenceNumberForAllocation: {}, deleted: false },
  });
}

/** When the kernel of the other node reported it. */
function arrivalOf(kind: "put" | "delete", destination: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const late = setTimeout(() => reject(new Error(`No route to ${destination} (${kind})`)), LIMIT_MILLISECONDS);
  waiting.set(`${kind} ${destination}`, (time) => {
    clearTimeout(late);
    resolve(time);
  });
  return promise;
}

async function follow(): Promise<void> {
  const events = watchRoutes(ownSockets, stop.signal);
  // Its socket is opened by the first call.
  let next = insideNetns(watched, () => ({ value: events.next() })).value;
  for (;;) {
    const { done, value } = await next;
    if (done) return;
    next = events.next();
    const now = performance.now();
    if (value !== "lost") for (const event of value) notice(event, now);
  }
}

function notice(event: RouteEvent, now: number): void {
  if (event.kind === "link") return;
  const name = `${event.kind} ${formatPrefix(event.route.destination)}`;
  waiting.get(name)?.(now);
  waiting.delete(name);
}
