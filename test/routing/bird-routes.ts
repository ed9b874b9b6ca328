/** Routes of BIRD in the kernel. */
import type { Host } from "../support/host.ts";
import type { Pair } from "./reachability.ts";

/** Whether every node has a route of BIRD to every pod of another node: a default route could lead there as well. */
export async function areRoutedByBird(pairs: readonly Pair[]): Promise<boolean> {
  const routes = await Promise.all(
    pairs
      .filter(({ from, to }) => from.host !== to.host)
      .flatMap(({ from, to }) =>
        to.addresses.map((address) => from.host.must(["ip", "route", "get", "fibmatch", address])),
      ),
  );
  return routes.every((route) => route.includes("proto bird"));
}

/** What BIRD has set in the main table, of both families. */
export async function birdRoutes(host: Host): Promise<string> {
  const ipv4 = await host.must(["ip", "route", "show", "proto", "bird"]);
  return ipv4 + (await host.must(["ip", "-6", "route", "show", "proto", "bird"]));
}
