/**
 * What peers do instead of listening to the kernel: it lists the connection table of its network namespace every five seconds.
 * Prints a line at each line of its stdin: how many connections it has seen since the one before.
 */
import { openConntrackTable } from "../../test/support/conntrack-table.ts";

const POLL_MILLISECONDS = 5_000;

const table = openConntrackTable("/proc/self/ns/net");
let known = new Set<string>();
let seen = 0;
const poll = () => {
  const present = new Set(table.list());
  for (const connection of present) if (!known.has(connection)) seen += 1;
  known = present;
};
poll();
seen = 0;
setInterval(poll, POLL_MILLISECONDS);
console.log("ready");
for await (const _ of console) {
  console.log(String(seen));
  seen = 0;
}
