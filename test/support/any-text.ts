/**
 * A mapping for the contract suite: any key and any text, as objects of one
 * kind. The name of an object is a digest of its key.
 */
import { createHash } from "node:crypto";
import type { CustomObjectMeans } from "../../src/datastore/kube/custom-objects.ts";
import { customObjects } from "../../src/datastore/kube/custom-objects.ts";
import type { KindMapping } from "../../src/datastore/kube/kind-mapping.ts";

/** The custom resource that the mapping uses; `resource.group` is the name of its definition. */
export const ANY_TEXT = { group: "contract.test", version: "v1", plural: "texts", kind: "Text" } as const;

/** The same, in two collections. */
export function anyTextInTwo(means: CustomObjectMeans): KindMapping {
  const first = anyText(means);
  const second = anyText(means, { ...ANY_TEXT, plural: "othertexts", kind: "OtherText" });
  const of = (key: string) => (createHash("sha256").update(key).digest().readUInt8() % 2 === 0 ? first : second);
  return {
    ...first,
    path: (key) => of(key).path(key),
    collections: (prefix) => [...first.collections(prefix), ...second.collections(prefix)],
    create: (key, ...others) => of(key).create(key, ...others),
    update: (key, ...others) => of(key).update(key, ...others),
    remove: (key, ...others) => of(key).remove(key, ...others),
  };
}

export function anyText(
  means: CustomObjectMeans,
  { group, version, plural, kind }: Readonly<Record<"group" | "version" | "plural" | "kind", string>> = ANY_TEXT,
): KindMapping {
  return customObjects(
    {
      prefix: "",
      apiVersion: `${group}/${version}`,
      kind,
      path: `/apis/${group}/${version}/${plural}`,
      nameOf: (key) => `text-${createHash("sha256").update(key).digest("hex")}`,
      encode: (key, value) => ({ members: `"spec":${JSON.stringify({ key, value })}` }),
      decode: (object) => {
        const { key, value } = object["spec"] as { readonly key: string; readonly value: string };
        return { key, value };
      },
    },
    means,
  );
}
