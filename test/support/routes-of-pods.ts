/** The routes that a host has because of its pods. */
import { ROUTE_PROTOCOL } from "../../src/linux/rtnetlink/route.ts";
import type { Host } from "./host.ts";

/** A block stays with its node after its last pod, and with it the route that keeps packets to it from circling. */
const OWN_BLOCK = new RegExp(`^blackhole \\S+/\\d+ .*proto ${ROUTE_PROTOCOL.own}\\b`);

/** Of all tables, as `ip` prints them; not those of the loopback interface, and not those of blocks. */
export async function routesOfPods(host: Host): Promise<readonly string[]> {
  const families = await Promise.all([
    host.must(["ip", "-4", "route", "show", "table", "all"]),
    host.must(["ip", "-6", "route", "show", "table", "all"]),
  ]);
  return families
    .flatMap((text) => text.split("\n"))
    .filter((route) => route !== "" && !route.includes(" dev lo ") && !OWN_BLOCK.test(route));
}
