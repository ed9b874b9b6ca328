/** All endpoints that are stored, or those of one namespace, a page at a time. */
import type { Datastore, Entry, Wanted } from "../datastore/datastore.ts";
import { resourcesPrefix } from "../model/keys.ts";

const PAGE = 128;

export async function* endpointPages(store: Datastore, namespace?: string): AsyncGenerator<readonly Entry[]> {
  const prefix = resourcesPrefix("workloadendpoints", namespace);
  let after: string | undefined;
  for (;;) {
    const wanted: Wanted = { kind: "prefix", prefix, limit: PAGE, ...(after === undefined ? {} : { after }) };
    const page = (await store.read([wanted])).answers[0] ?? [];
    yield page;
    after = page.at(-1)?.key;
    if (page.length < PAGE || after === undefined) return;
  }
}
