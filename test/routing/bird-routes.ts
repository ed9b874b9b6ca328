/** Whose routes lead to pods. */
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
