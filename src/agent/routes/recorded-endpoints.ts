/** Reads the endpoints of this node from the datastore itself, past any copy. Rare: only before a route is removed. */
import type { Datastore } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { type RoutedEndpoint, routedEndpoint } from "./local-routes.ts";

/** `undefined` if the datastore cannot be reached, or if a record is unreadable: it could be that of any link. */
export async function readRoutedEndpoints(
  store: Pick<Datastore, "read">,
  node: string,
): Promise<readonly RoutedEndpoint[] | undefined> {
  const endpoints: RoutedEndpoint[] = [];
  try {
    for await (const { entries } of pagesBelow(store, ENDPOINT.prefix(), { node })) {
      for (const { key, value } of entries) {
        const endpoint = routedEndpoint(ENDPOINT.codec.read(value, key), node);
        if (endpoint !== undefined) endpoints.push(endpoint);
      }
    }
    return endpoints;
  } catch {
    return undefined;
  }
}
