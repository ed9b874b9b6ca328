/** `apply`, `create` and `replace`: the same but for what they expect to find. */
import type { Command, Example } from "../command.ts";
import { withDatastore, withNewDatastore } from "../datastore/open.ts";
import { forEachResource } from "./each.ts";
import { NAMESPACE_OPTION } from "./reference.ts";
import { FILE_OPTION, readGivenResources } from "./sources.ts";
import { type Way, writeResource } from "./write.ts";

const COMMON_DESCRIPTION = [
  "All documents are checked before anything is written; unknown fields and keys that are given twice are refused.",
  "A resource that bears a resourceVersion is written only over that version.",
].join("\n");

export const applyCommand = writeCommand("apply", "Create resources, or replace those that exist", [
  { command: "apply -f pools.yaml", does: "Make it so" },
  { command: "apply -f manifests/ -o json", does: "Every file of a folder, with an answer for a script" },
  { command: "apply -f - < pools.yaml", does: "From standard input" },
]);

export const createCommand = writeCommand("create", "Create resources that do not exist yet", [
  { command: "create -f pool.yaml", does: "Refused when the pool exists" },
  { command: "create -f - < pool.json", does: "The same from standard input" },
]);

export const replaceCommand = writeCommand("replace", "Replace resources that exist", [
  { command: "replace -f pool.yaml", does: "Refused when there is no such pool, or when it changed meanwhile" },
]);

function writeCommand(way: Way, summary: string, examples: readonly Example[]): Command {
  return {
    kind: "command",
    name: way,
    summary,
    description: COMMON_DESCRIPTION,
    options: [FILE_OPTION, NAMESPACE_OPTION],
    needsDatastore: true,
    examples,
    async run(context, given) {
      const all = await readGivenResources(context, given);
      const open = way === "replace" ? withDatastore : withNewDatastore;
      return open(context, given, (store) =>
        forEachResource(context, given, {
          all,
          act: (each) => writeResource(store, each, { way, now: () => context.now(), uuid: () => context.uuid() }),
        }),
      );
    },
  };
}
