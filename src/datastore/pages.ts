/** All that lies below a prefix, a page at a time: however much it is, no answer grows out of hand. */
import type { Datastore, Entry, Wanted } from "./datastore.ts";

const PAGE = 128;

export async function* pagesBelow(store: Datastore, prefix: string): AsyncGenerator<readonly Entry[]> {
  let after: string | undefined;
  for (;;) {
    const wanted: Wanted = { kind: "prefix", prefix, limit: PAGE, ...(after === undefined ? {} : { after }) };
    const page = (await store.read([wanted])).answers[0] ?? [];
    yield page;
    after = page.at(-1)?.key;
    if (page.length < PAGE || after === undefined) return;
  }
}
