/** The search for leaks of a host, as its agent makes it every few minutes, for tests without a kernel. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { findLeaks } from "../../src/ipam/leaks/find.ts";
import { readNodeRecords } from "../../src/ipam/leaks/node-records.ts";
import { releaseLeaks } from "../../src/ipam/leaks/release.ts";
import { formatMark } from "../../src/ipam/link-mark.ts";
import { means } from "./ipam.ts";

/** No ADD is in progress by then. */
const LONG_AFTER = new Date("2100-01-01T00:00:00Z");

/** `containers`: those that have a link on the host, all of them in network "net". */
export async function searchHostOf(store: Datastore, node: string, containers: readonly string[]): Promise<void> {
  const records = await readNodeRecords(store, node);
  const marks = containers.map((containerId) => formatMark({ network: "net", containerId, ifname: "eth0" }));
  const links = { marks: new Set(marks), routed: new Map<string, string>(), bootedAt: new Date(0) };
  const leaks = findLeaks(records.allocations, { links, now: LONG_AFTER });
  const allocator = openAllocator(store, means());
  await releaseLeaks(leaks, records, { store, allocator, forget: async () => {} });
}
