/** Changes one record of the datastore, guarded by its revision. */
import * as v from "valibot";
import type { Change, Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { metadataSchema } from "../../model/metadata.ts";
import { quoted } from "../../quote.ts";

const ATTEMPTS = 10;

/**
 * Reads the record and writes what `decide` returns for it: `undefined` leaves it as it is, "delete" removes it. Again if somebody
 * else wrote it in between.
 */
export async function changeRecord(
  store: Datastore,
  key: string,
  decide: (value: string | undefined) => string | "delete" | undefined,
): Promise<"changed" | "unchanged"> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const { answers } = await store.read([{ kind: "key", key }]);
    const entry = answers[0]?.[0];
    const wanted = decide(entry?.value);
    if (wanted === undefined || wanted === entry?.value || (wanted === "delete" && entry === undefined))
      return "unchanged";
    const written = await store.commit([changeOf(key, entry?.revision, wanted)]);
    if (written.ok) return "changed";
  }
  throw new PluginError("try-again-later", `Cannot change ${quoted(key)}: others change it all the time`);
}

function changeOf(key: string, revision: string | undefined, wanted: string): Change {
  if (revision === undefined) return { kind: "create", key, value: wanted };
  return wanted === "delete" ? { kind: "delete", key, revision } : { kind: "update", key, value: wanted, revision };
}

/** As a datastore has it, with all its fields. */
export const storedResource = v.object({
  apiVersion: v.string(),
  kind: v.string(),
  metadata: metadataSchema,
  spec: v.unknown(),
});

/** To be created again as it was: without what the datastore gives to each. */
export function asNew(resource: v.InferOutput<typeof storedResource>): string {
  const { name, namespace, labels, annotations } = resource.metadata;
  const metadata = { name, namespace, labels, annotations };
  return JSON.stringify({ apiVersion: resource.apiVersion, kind: resource.kind, metadata, spec: resource.spec });
}
