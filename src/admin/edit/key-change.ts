/** What `label` and `annotate` do to labels and annotations: KEY=VALUE sets one, KEY- removes it. Pure. */
import { PluginError } from "../../errors.ts";
import type { Resource } from "../../model/resource.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Target } from "./update.ts";

export type Pairs = Readonly<Record<string, string>>;
type Noun = "label" | "annotation";

export interface KeyChange {
  readonly noun: Noun;
  readonly set: ReadonlyMap<string, string>;
  readonly remove: ReadonlySet<string>;
  /** Those that have another value. */
  readonly existing: "keep" | "overwrite";
}

export function keyChangeOf(noun: Noun, words: readonly string[], { switches }: Given): KeyChange {
  const existing = switches.has("overwrite") ? "overwrite" : "keep";
  const change = { noun, existing } as const;
  if (!switches.has("remove")) return { ...change, ...parseKeyChange(noun, words) };
  if (switches.has("overwrite")) throw new UsageError("--remove and --overwrite cannot be combined");
  const withValue = words.find((word) => word.includes("="));
  if (withValue !== undefined) {
    throw new UsageError(`${quoted(withValue)} cannot be given with --remove; give the key of the ${noun} alone`);
  }
  const removed = words.map((word) => (word.endsWith("-") ? word : `${word}-`));
  return { ...change, ...parseKeyChange(noun, removed) };
}

function parseKeyChange(noun: Noun, words: readonly string[]): Pick<KeyChange, "set" | "remove"> {
  if (words.length === 0) throw new UsageError("At least one KEY=VALUE or KEY- is required");
  const set = new Map<string, string>();
  const remove = new Set<string>();
  for (const word of words) {
    const equals = word.indexOf("=");
    const key = equals < 0 ? word.replace(/-$/, "") : word.slice(0, equals);
    if (!KEY.test(key) || (equals < 0 && !word.endsWith("-"))) {
      const removal = noun === "label" ? "KEY- or KEY with --remove" : "KEY-";
      throw new UsageError(`${quoted(word)} is not a valid ${noun}; use KEY=VALUE to set it, ${removal} to remove it`);
    }
    if (equals < 0) remove.add(key);
    else set.set(key, word.slice(equals + 1));
  }
  const both = [...set.keys()].find((key) => remove.has(key));
  if (both !== undefined) throw new UsageError(`The ${noun} ${quoted(both)} cannot be both set and removed`);
  return { set, remove };
}

/** An optional domain with a slash, then a name. */
const KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

export function changedPairs(before: Pairs, { noun, set, remove, existing }: KeyChange): Pairs {
  for (const [key, value] of set) {
    const known = Object.hasOwn(before, key) ? before[key] : undefined;
    if (existing === "overwrite" || known === undefined || known === value) continue;
    const message = `Cannot set ${noun} ${quoted(key)}: it already has the value ${quoted(known)}`;
    throw new PluginError("resource-invalid", message, { details: "use --overwrite to change it" });
  }
  const kept = Object.entries(before).filter(([key]) => !remove.has(key));
  return Object.fromEntries([...kept, ...set]);
}

/** The resource with the change in its metadata. Some kinds are stored without labels or annotations. */
export function withChangedKeys({ kind, name }: Target, resource: Resource, change: KeyChange): Resource {
  const field = change.noun === "label" ? "labels" : "annotations";
  const pairs = changedPairs(resource.metadata[field] ?? {}, change);
  const changed: Resource = { ...resource, metadata: { ...resource.metadata, [field]: pairs } };
  const kept = kind.codec.read(kind.codec.write(changed), kind.key(name)).metadata[field] ?? {};
  if (samePairs(kept, pairs)) return changed;
  const verb = change.noun === "label" ? "label" : "annotate";
  throw new PluginError("resource-invalid", `Cannot ${verb} ${kind.kind}: this kind does not support ${field}`);
}

function samePairs(left: Pairs, right: Pairs): boolean {
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => left[key] === right[key]);
}
