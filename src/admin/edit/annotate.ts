import { identity } from "../../identity.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { quoted } from "../../quote.ts";
import { type Command, UsageError } from "../main/command.ts";
import { DRY_RUN_OPTION } from "../resources/dry-run.ts";
import { KIND_WORDS, NAMESPACE_OPTION, parseReference } from "../resources/reference.ts";
import { changeNamed } from "./change-named.ts";
import { type KeyChange, keyChangeOf, withChangedKeys } from "./key-change.ts";

export const annotateCommand: Command = {
  kind: "command",
  name: "annotate",
  summary: "Add, change or remove annotations of a resource",
  description: [
    "KEY=VALUE sets an annotation, KEY- removes it. An existing annotation with another value is changed only with --overwrite.",
    "Annotations of pods and namespaces are those of Kubernetes: kubectl annotate.",
  ].join("\n"),
  operands: "KIND NAME KEY=VALUE… KEY-…",
  completes: KIND_WORDS,
  completesNames: "one",
  options: [
    { name: "overwrite", summary: "Change existing annotations that have another value" },
    NAMESPACE_OPTION,
    DRY_RUN_OPTION,
  ],
  needsDatastore: true,
  examples: [
    { command: 'annotate ippool blue owner="network team"', does: "Set an annotation" },
    { command: "annotate ippool blue owner=me --overwrite", does: "Change it" },
    { command: "annotate ippool blue owner-", does: "Remove it" },
  ],
  async run(context, given) {
    const { kind, name, rest } = parseReference(given);
    const change = keyChangeOf("annotation", rest, given);
    if (kind.kind === workloadEndpoint.kind) refuseOwnAnnotations(change);
    return changeNamed(context, given, {
      ...{ kind, name },
      change: (resource, target) => withChangedKeys(target, resource, change),
      action: "annotated",
    });
  },
};

/** The plugin wrote them when it connected the workload: GC and address checks rely on them. */
function refuseOwnAnnotations({ set, remove }: KeyChange): void {
  const prefixes = [identity.labelPrefix, identity.annotationPrefix];
  const own = [...set.keys(), ...remove].find((key) => prefixes.some((prefix) => key.startsWith(prefix)));
  if (own === undefined) return;
  throw new UsageError(
    `Annotation ${quoted(own)} of a workload endpoint cannot be changed: it records how the workload was connected`,
  );
}
