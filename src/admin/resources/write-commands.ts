/** `apply`, `create` and `replace`: they differ only in whether the resource must exist. */
import type { Command, Example } from "../command.ts";
import { withDatastore, withNewDatastore } from "../datastore/open.ts";
import { forEachResource } from "./for-each-resource.ts";
import { NAMESPACE_OPTION } from "./reference.ts";
import { FILE_OPTIONS, readGivenResources } from "./sources.ts";
import { type WriteMode, writeResource } from "./write.ts";

const COMMON_DESCRIPTION = [
  "All documents are validated before anything is written; unknown fields and duplicate keys are errors.",
  "If a resource has a resourceVersion, it is written only if the stored resource still has that version.",
].join("\n");

export const applyCommand = writeCommand("apply", "Create resources, or replace existing ones", [
  { command: "apply -f pools.yaml", does: "Create or update the resources in a file" },
  { command: "apply -f manifests/ -o json", does: "Apply all files in a directory, with JSON output for a script" },
  { command: "apply -f - < pools.yaml", does: "Apply from standard input" },
]);

export const createCommand = writeCommand("create", "Create new resources", [
  { command: "create -f pool.yaml", does: "Create a pool; fails if it exists" },
  { command: "create -f - < pool.json", does: "Create from standard input" },
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
    description: COMMON_DESCRIPTION,
    options: [...FILE_OPTIONS, NAMESPACE_OPTION],
    needsDatastore: true,
    examples,
    async run(context, given) {
      const all = await readGivenResources(context, given);
      const open = mode === "replace" ? withDatastore : withNewDatastore;
      return open(context, given, (store) =>
        forEachResource(context, given, {
          all,
          act: (each) => writeResource(store, each, { mode, now: () => context.now(), uuid: () => context.uuid() }),
        }),
      );
    },
  };
}
