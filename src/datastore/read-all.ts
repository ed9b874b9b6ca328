/** Everything below a prefix, page by page: for lists and reports, never on the way of an ADD. Pages may be of different moments. */
import type { Datastore, Entry } from "./datastore.ts";

const PAGE = 500;

export async function readAllEntries(store: Datastore, prefix: string): Promise<readonly Entry[]> {
  const all: Entry[] = [];
  for (;;) {
    const after = all.at(-1)?.key;
    const { answers } = await store.read([
      { kind: "prefix", prefix, limit: PAGE, ...(after === undefined ? {} : { after }) },
    ]);
    const page = answers[0] ?? [];
    all.push(...page);
    if (page.length < PAGE) return all;
  }
}
