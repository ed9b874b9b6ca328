/** Reads everything that an earlier release has stored, and converts it. Reads only. */

import { counted } from "../../counted.ts";
import { type ApiObject, parseList } from "../../datastore/kube/api.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { FORMER_API } from "../former-names.ts";
import { type Conversion, duplicates, joined, withPoolProtection } from "./conversion.ts";
import { convertIpam } from "./convert-ipam.ts";
import { convertResources } from "./convert-resources.ts";
import { FORMER_IPAM, FORMER_PLURALS, FORMER_RESOURCES, type FormerResourceKind } from "./former-kinds.ts";
import { FORMER_PATH } from "./former-object.ts";
import { readOwners } from "./former-owners.ts";

export type FormerObjects = Pick<ClusterObjects, "read" | "readText" | "list">;

export async function readFormer(objects: FormerObjects): Promise<Conversion> {
  const found: { readonly kind: FormerResourceKind; readonly items: readonly ApiObject[] }[] = [];
  for (const kind of FORMER_RESOURCES) found.push({ kind, items: await listFormer(objects, kind.plural) });
  const ownerExists = await readOwners(
    objects,
    found.flatMap(({ items }) => items),
  );
  const resources = found.map(({ kind, items }) => convertResources(kind, items, ownerExists));
  const all = joined([...resources, await readFormerIpam(objects)]);
  return {
    ...all,
    records: withPoolProtection(all.records),
    obstacles: [...all.obstacles, ...duplicates(all.records)],
  };
}

async function readFormerIpam(objects: FormerObjects): Promise<Conversion> {
  return convertIpam({
    blocks: await listFormer(objects, FORMER_IPAM.blocks),
    affinities: await listFormer(objects, FORMER_IPAM.affinities),
    handles: await listFormer(objects, FORMER_IPAM.handles),
    configurations: await listFormer(objects, FORMER_IPAM.configurations),
  });
}

const PAGE = "500";

/** As text, since sequence numbers of blocks exceed what a JSON number holds here. */
async function listFormer(objects: FormerObjects, plural: string): Promise<readonly ApiObject[]> {
  const path = `${FORMER_PATH}/${plural}`;
  const items: ApiObject[] = [];
  for (let next: string | undefined = ""; next !== undefined; ) {
    const text: string | undefined = await objects.readText(path, {
      limit: PAGE,
      ...(next === "" ? {} : { continue: next }),
    });
    if (text === undefined) return items;
    const page = parseList(text, path);
    items.push(...page.items);
    next = page.next;
  }
  return items;
}

/** Kinds that earlier releases, or other programs, have in the group, and that nothing becomes of. */
export async function unknownKinds(objects: FormerObjects): Promise<readonly string[]> {
  const discovered = await objects.read(FORMER_PATH);
  const resources = Array.isArray(discovered?.["resources"]) ? discovered["resources"].filter(isObject) : [];
  const names = resources.flatMap(({ name }) => (typeof name === "string" && !name.includes("/") ? name : []));
  const notes: string[] = [];
  for (const plural of names.filter((name) => !FORMER_PLURALS.includes(name))) {
    const { length } = await objects.list(`${FORMER_PATH}/${plural}`);
    if (length > 0)
      notes.push(
        `${counted(length, "object")} of ${plural}.${FORMER_API.group} ${length === 1 ? "is" : "are"} not copied: this release has no such kind`,
      );
  }
  return notes;
}
