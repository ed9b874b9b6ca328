/**
 * The references that were removed, in backups of the run: written before the first of them is removed, and never changed.
 * References that appear later are in another backup.
 */
import { parseJson } from "../../parse-json.ts";
import type { Backups } from "../engine/step.ts";
import { type FoundObject, type OwnedObject, ownedKey } from "./owned-object.ts";

/** "before": what the upgrade has removed. "rollback": what going back has removed, with UIDs of before the upgrade. */
export type Occasion = "before" | "rollback";

/** Everything that was recorded; of an object that was recorded twice, all references once. */
export async function readRecorded(backups: Backups, occasion: Occasion): Promise<readonly OwnedObject[]> {
  const objects = new Map<string, OwnedObject>();
  for (let number = 1; ; number++) {
    const text = await backups.read(nameOf(occasion, number));
    if (text === undefined) return [...objects.values()];
    for (const object of decode(text)) {
      const known = objects.get(ownedKey(object))?.references ?? [];
      const references = new Map([...known, ...object.references].map((each) => [each.uid, each]));
      objects.set(ownedKey(object), { ...object, references: [...references.values()] });
    }
  }
}

/** Writes nothing if all of it is recorded already. */
export async function record(backups: Backups, occasion: Occasion, found: readonly OwnedObject[]): Promise<void> {
  const known = new Map((await readRecorded(backups, occasion)).map((each) => [ownedKey(each), each]));
  const unknown = found.filter((each) => {
    const references = known.get(ownedKey(each))?.references ?? [];
    return each.references.some(({ uid }) => !references.some((reference) => reference.uid === uid));
  });
  if (unknown.length === 0) return;
  let number = 1;
  while ((await backups.read(nameOf(occasion, number))) !== undefined) number++;
  await backups.save(nameOf(occasion, number), JSON.stringify(unknown.map(withoutFindings)));
}

function nameOf(occasion: Occasion, number: number): string {
  return `owner-references-${occasion}-${number}`;
}

function withoutFindings(object: OwnedObject | FoundObject): OwnedObject {
  const { apiVersion, kind, plural, namespace, name, uid, references } = object;
  return { apiVersion, kind, plural, ...(namespace === undefined ? {} : { namespace }), name, uid, references };
}

function decode(text: string): readonly OwnedObject[] {
  const value = parseJson(text);
  return Array.isArray(value) ? value : [];
}
