import { loadOnce } from "../../load-once.ts";
import type { Command, Example } from "../main/command.ts";
import { FILE_OPTIONS } from "../manifest/options.ts";
import { DRY_RUN_OPTION, NAMESPACE_OPTION } from "../resources/options.ts";
import type { WriteMode } from "../resources/write.ts";
import { SKIP_EXISTS_OPTION } from "./options.ts";

export const validateCommand: Command = {
  kind: "command",
  name: "validate",
  summary: "Check resources in files without a datastore",
  description: [
    "Checks the syntax, the fields and their values, and what two of the given resources make wrong together, such as overlapping",
    "pools or the same name twice. What only the datastore shows (resources that exist, tiers that policies name) is checked by",
    '"apply --dry-run". Fields that have no effect in this version are reported on stderr. The exit code is 1 if a resource is not valid.',
  ].join("\n"),
  options: [...FILE_OPTIONS, NAMESPACE_OPTION],
  examples: [
    { command: "validate -f policies/ -R", does: "Check all files below a directory" },
    { command: "validate -f - -o json < pool.yaml", does: "Check standard input, with JSON output for a script" },
  ],
  load: loadOnce(() => import("./validate.ts")),
};

export const diffCommand: Command = {
  kind: "command",
  name: "diff",
  summary: "Show what apply would change",
  description: [
    "Compares the resources as they are stored with what they would be after apply; nothing is written.",
    "Exit codes, as in kubectl: 0 no differences, 1 differences, 2 failure.",
  ].join("\n"),
  options: [...FILE_OPTIONS, NAMESPACE_OPTION],
  needsDatastore: true,
  examples: [{ command: "diff -f pools.yaml", does: "Show the changes that apply would make" }],
  load: loadOnce(() => import("./diff.ts")),
};

const COMMON_DESCRIPTION = [
  "All documents are validated before anything is written; unknown fields and duplicate keys are errors. A problem names its file and line.",
  "If a resource has a resourceVersion, it is written only if the stored resource still has that version.",
  "Fields that have no effect in this version are reported on stderr.",
  "So is whom a change of policies, profiles, tiers, network sets, endpoints or labels closes or opens, and whose rules match others",
  "than before (changes); with --dry-run too. Settings of node agents, and what policies with preDNAT or doNotTrack do to single",
  "packets, are not compared: see policy explain.",
];

const APPLY_DESCRIPTION = [
  "Everything is checked before anything is written, against the datastore too: overlapping pools, immutable fields.",
  "Labels, annotations and other metadata that a document does not mention are kept; replace removes them.",
];

export const applyCommand = writeCommand("apply", "Create resources, or change existing ones", [
  { command: "apply -f pools.yaml", does: "Create or update the resources in a file" },
  { command: "apply -f manifests/ -R -o json", does: "Apply all files below a directory, with JSON output" },
  { command: "apply -f - --dry-run < pools.yaml", does: "Check what would be done with standard input" },
]);

export const createCommand = writeCommand("create", "Create new resources", [
  { command: "create -f pool.yaml", does: "Create a pool; fails if it exists" },
  { command: "create -f - < pool.json", does: "Create from standard input" },
  { command: "create -f pools/ --skip-exists", does: "Create what does not exist yet" },
]);

export const replaceCommand = writeCommand("replace", "Replace existing resources", [
  {
    command: "replace -f pool.yaml",
    does: "Replace a pool; fails if it does not exist, or has changed since its resourceVersion",
  },
]);

function writeCommand(mode: WriteMode, summary: string, examples: readonly Example[]): Command {
  return {
    kind: "command",
    name: mode,
    summary,
    description: [...COMMON_DESCRIPTION, ...(mode === "apply" ? APPLY_DESCRIPTION : [])].join("\n"),
    options: [...FILE_OPTIONS, ...(mode === "create" ? [SKIP_EXISTS_OPTION] : []), NAMESPACE_OPTION, DRY_RUN_OPTION],
    needsDatastore: true,
    examples,
    load: loadOnce(async () => (await import("./write-commands.ts")).writing(mode)),
  };
}
