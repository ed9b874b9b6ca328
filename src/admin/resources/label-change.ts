/** What `label` does to labels: KEY=VALUE sets one, KEY- removes it. Pure. */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../command.ts";
import type { Option } from "../option.ts";

export type Labels = Readonly<Record<string, string>>;

export interface LabelChange {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: ReadonlySet<string>;
  /** Labels that have another value. */
  readonly existing: "keep" | "overwrite";
}

export const LABEL_CHANGE_OPTIONS: readonly Option[] = [
  { name: "overwrite", summary: "Change existing labels that have another value" },
  { name: "remove", summary: "Remove the labels that are given as KEY" },
];

export function labelChangeOf(words: readonly string[], { switches }: Given): LabelChange {
  const existing = switches.has("overwrite") ? "overwrite" : "keep";
  if (!switches.has("remove")) return { ...parseLabelChange(words), existing };
  if (switches.has("overwrite")) throw new UsageError("--remove and --overwrite cannot be combined");
  const withValue = words.find((word) => word.includes("="));
  if (withValue !== undefined) {
    throw new UsageError(`${quoted(withValue)} cannot be given with --remove; give the key of the label alone`);
  }
  return { ...parseLabelChange(words.map((word) => (word.endsWith("-") ? word : `${word}-`))), existing };
}

function parseLabelChange(words: readonly string[]): Pick<LabelChange, "set" | "remove"> {
  if (words.length === 0) throw new UsageError("At least one KEY=VALUE or KEY- is required");
  const set = new Map<string, string>();
  const remove = new Set<string>();
  for (const word of words) {
    const equals = word.indexOf("=");
    const key = equals < 0 ? word.replace(/-$/, "") : word.slice(0, equals);
    if (!LABEL_KEY.test(key) || (equals < 0 && !word.endsWith("-"))) {
      throw new UsageError(
        `${quoted(word)} is not a valid label; use KEY=VALUE to set a label, KEY- or KEY with --remove to remove one`,
      );
    }
    if (equals < 0) remove.add(key);
    else set.set(key, word.slice(equals + 1));
  }
  const both = [...set.keys()].find((key) => remove.has(key));
  if (both !== undefined) throw new UsageError(`Label ${quoted(both)} cannot be both set and removed`);
  return { set, remove };
}

/** An optional domain with a slash, then a name. */
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

export function changedLabels(before: Labels, { set, remove, existing }: LabelChange): Labels {
  for (const [key, value] of set) {
    const known = Object.hasOwn(before, key) ? before[key] : undefined;
    if (existing === "overwrite" || known === undefined || known === value) continue;
    throw new PluginError(
      "resource-invalid",
      `Cannot set label ${quoted(key)}: it already has the value ${quoted(known)}`,
      {
        details: "use --overwrite to change it",
      },
    );
  }
  const kept = Object.entries(before).filter(([key]) => !remove.has(key));
  return Object.fromEntries([...kept, ...set]);
}
