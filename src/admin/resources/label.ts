import { PluginError } from "../../errors.ts";
import type { Resource } from "../../model/resource.ts";
import { type Command, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { forEachResource } from "./each.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseReference } from "./reference.ts";
import { updateResource } from "./update.ts";

type Labels = Readonly<Record<string, string>>;

/** Labels to set, and labels to take away. */
interface LabelChange {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: ReadonlySet<string>;
}

export const labelCommand: Command = {
  kind: "command",
  name: "label",
  summary: "Set or remove labels of a resource",
  description: "KEY=VALUE sets a label, KEY- removes it. A label that has another value changes only with --overwrite.",
  operands: "KIND NAME KEY=VALUE… KEY-…",
  completes: KIND_WORDS,
  options: [{ name: "overwrite", summary: "Change labels that have another value" }, NAMESPACE_OPTION],
  needsDatastore: true,
  examples: [
    { command: "label node n1 rack=a", does: "Pools with nodeSelector rack == 'a' now serve this node" },
    { command: "label node n1 rack-", does: "Take the label away" },
  ],
  async run(context, given) {
    const { kind, name, rest } = parseReference(given);
    const change = parseLabelChange(rest);
    const mayOverwrite = given.switches.has("overwrite");
    return withDatastore(context, given, (store) =>
      forEachResource(context, given, {
        all: [{ kind, name }],
        act: async (target) => {
          const { action, revision } = await updateResource(store, target, {
            change: (resource) => {
              const labelled = withLabels(resource, change, mayOverwrite ? "overwrite" : "keep");
              const kept = kind.codec.read(kind.codec.write(labelled), kind.key(name)).metadata.labels ?? {};
              if (sameLabels(kept, labelled.metadata.labels ?? {})) return labelled;
              throw new PluginError("resource-invalid", `Cannot label ${kind.kind}: this kind keeps no labels`);
            },
            context,
          });
          return { action: action === "unchanged" ? action : "labelled", revision };
        },
      }),
    );
  },
};

function parseLabelChange(words: readonly string[]): LabelChange {
  if (words.length === 0) throw new UsageError("At least one KEY=VALUE or KEY- is needed");
  const set = new Map<string, string>();
  const remove = new Set<string>();
  for (const word of words) {
    const equals = word.indexOf("=");
    const key = equals < 0 ? word.replace(/-$/, "") : word.slice(0, equals);
    if (!LABEL_KEY.test(key) || (equals < 0 && !word.endsWith("-"))) {
      throw new UsageError(`"${word}" is no label; write KEY=VALUE to set one, KEY- to remove one`);
    }
    if (equals < 0) remove.add(key);
    else set.set(key, word.slice(equals + 1));
  }
  const both = [...set.keys()].find((key) => remove.has(key));
  if (both !== undefined) throw new UsageError(`Label "${both}" cannot be set and removed at once`);
  return { set, remove };
}

/** An optional domain, a slash, and a name. */
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

function withLabels(resource: Resource, { set, remove }: LabelChange, existing: "keep" | "overwrite"): Resource {
  const before = resource.metadata.labels ?? {};
  for (const [key, value] of set) {
    const known = Object.hasOwn(before, key) ? before[key] : undefined;
    if (existing === "overwrite" || known === undefined || known === value) continue;
    throw new PluginError("resource-invalid", `Cannot set label "${key}": it is "${known}"`, {
      details: "change it with --overwrite",
    });
  }
  const kept = Object.entries(before).filter(([key]) => !remove.has(key));
  return { ...resource, metadata: { ...resource.metadata, labels: Object.fromEntries([...kept, ...set]) } };
}

function sameLabels(left: Labels, right: Labels): boolean {
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => left[key] === right[key]);
}
