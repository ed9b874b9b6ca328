import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { Resource } from "../../model/resource.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { quoted } from "../../quote.ts";
import { type Command, type Given, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { DRY_RUN_OPTION, surroundingsOf } from "./dry-run.ts";
import { forEachResource } from "./for-each-resource.ts";
import { withPolicyNotes } from "./policy-notes.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseReference } from "./reference.ts";
import { updateResource } from "./update.ts";

type Labels = Readonly<Record<string, string>>;

/** Labels to set, and labels to remove. */
interface LabelChange {
  readonly set: ReadonlyMap<string, string>;
  readonly remove: ReadonlySet<string>;
}

export const labelCommand: Command = {
  kind: "command",
  name: "label",
  summary: "Add, change or remove labels of a resource",
  description: [
    "KEY=VALUE sets a label, KEY- removes it, as does KEY with --remove.",
    "An existing label with another value is changed only with --overwrite.",
  ].join("\n"),
  operands: "KIND NAME KEY=VALUE… KEY-…",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [
    { name: "overwrite", summary: "Change existing labels that have another value" },
    { name: "remove", summary: "Remove the labels that are given as KEY" },
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    {
      command: "label node n1 rack=a",
      does: "Set a label: pools with nodeSelector rack == 'a' now apply to this node",
    },
    { command: "label node n1 rack-", does: "Remove the label" },
    {
      command: "label workloadendpoint node1-cni-4f2a-eth0 role=web",
      does: "Set a label of a running container: policies that select it by role apply at once",
    },
  ],
  async run(context, given) {
    const { kind, name, rest } = parseReference(given);
    const change = given.switches.has("remove") ? parseRemovedLabels(rest, given) : parseLabelChange(rest);
    if (kind.kind === workloadEndpoint.kind) refuseOwnLabels(change);
    const mayOverwrite = given.switches.has("overwrite");
    return withDatastore(context, given, (store) => {
      const work = surroundingsOf(given, { store, context });
      const labelled = (resource: Resource) => {
        const wanted = withLabels(resource, change, mayOverwrite ? "overwrite" : "keep");
        const kept = kind.codec.read(kind.codec.write(wanted), kind.key(name)).metadata.labels ?? {};
        if (sameLabels(kept, wanted.metadata.labels ?? {})) return wanted;
        throw new PluginError("resource-invalid", `Cannot label ${kind.kind}: this kind does not support labels`);
      };
      return withPolicyNotes(work.store, { context, given, kinds: [kind] }, (noted) =>
        forEachResource(context, given, {
          all: [{ kind, name }],
          act: async (target) => {
            const done = await updateResource(noted, target, { change: labelled, context: work.context });
            return { ...done, action: done.action === "unchanged" ? done.action : "labelled" };
          },
        }),
      );
    });
  },
};

function parseRemovedLabels(words: readonly string[], { switches }: Given): LabelChange {
  if (switches.has("overwrite")) throw new UsageError("--remove and --overwrite cannot be combined");
  const withValue = words.find((word) => word.includes("="));
  if (withValue !== undefined) {
    throw new UsageError(`${quoted(withValue)} cannot be given with --remove; give the key of the label alone`);
  }
  return parseLabelChange(words.map((word) => (word.endsWith("-") ? word : `${word}-`)));
}

function parseLabelChange(words: readonly string[]): LabelChange {
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

/** Policies of its namespace select an endpoint by them: without them it would leave its policies. */
const OWN_LABELS = ["namespace", "orchestrator", "serviceaccount"].map((name) => `${identity.labelPrefix}${name}`);

function refuseOwnLabels({ set, remove }: LabelChange): void {
  const own = OWN_LABELS.find((label) => set.has(label) || remove.has(label));
  if (own === undefined) return;
  throw new UsageError(
    `Label ${quoted(own)} of a workload endpoint cannot be changed: policies of its namespace and service account rely on it`,
  );
}

/** An optional domain with a slash, then a name. */
const LABEL_KEY = /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

function withLabels(resource: Resource, { set, remove }: LabelChange, existing: "keep" | "overwrite"): Resource {
  const before = resource.metadata.labels ?? {};
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
  return { ...resource, metadata: { ...resource.metadata, labels: Object.fromEntries([...kept, ...set]) } };
}

function sameLabels(left: Labels, right: Labels): boolean {
  const keys = Object.keys(left);
  return keys.length === Object.keys(right).length && keys.every((key) => left[key] === right[key]);
}
