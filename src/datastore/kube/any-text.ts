/**
 * A mapping for the contract suite: any key and any text, as objects of one
 * kind. The name of an object is a digest of its key.
 */
import { createHash } from "node:crypto";
import type { CustomObjectMeans } from "./custom-objects.ts";
import { customObjects } from "./custom-objects.ts";
import type { KindMapping } from "./kind-mapping.ts";

/** The custom resource that the mapping uses; `resource.group` is the name of its definition. */
export const ANY_TEXT = { group: "contract.test", version: "v1", plural: "texts", kind: "Text" } as const;

export function anyText(means: CustomObjectMeans): KindMapping {
  const { group, version, plural, kind } = ANY_TEXT;
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
