/**
 * What can follow the words of a command line, for the completion scripts:
 * kinds, and the names of resources in the datastore. The scripts give it a
 * limit of time, and offer nothing if it fails.
 */

import { withDatastore } from "../datastore/open.ts";
import { connectedNames, containerWord } from "../edit/label-containers.ts";
import { parseArguments } from "../main/arguments.ts";
import { type Command, type CommandCode, type CommandGroup, EXIT_OK, type Given, optionsOf } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { splitLeadingOptions } from "../main/leading-options.ts";
import { searchedNamespace } from "../resources/find.ts";
import { KIND_WORDS } from "../resources/options.ts";
import { parseSelections } from "../resources/reference.ts";
import { findAll } from "../resources/stored.ts";

/** `commands`: the table of all commands. */
export function printingNames(commands: () => CommandGroup): CommandCode {
  return {
    async run(context: DatastoreAccess, { operands }: Given) {
      const before = operands.slice(0, -1);
      const current = operands.at(-1) ?? "";
      const line = parseLine(before, commands());
      const words = line === undefined ? [] : await offers(line, current, context);
      context.stdout(words.map((word) => `${word}\n`).join(""));
      return EXIT_OK;
    },
  };
}

interface Line {
  readonly command: Command;
  readonly given: Given;
}

/** `undefined` if the words do not name a command with resources. */
function parseLine(words: readonly string[], group: CommandGroup): Line | undefined {
  const { leading, rest } = splitLeadingOptions(words, new Set());
  const [first, ...after] = rest;
  const member = group.commands.find(({ name }) => name === first);
  if (member?.kind === "group") return parseLine([...leading, ...after], member);
  if (member?.completesNames === undefined) return undefined;
  return { command: member, given: parseArguments([...leading, ...after], optionsOf(member)) };
}

async function offers({ command, given }: Line, current: string, context: DatastoreAccess): Promise<readonly string[]> {
  const { operands } = given;
  if (current.includes("/") && operands.every((operand) => operand.includes("/"))) {
    const [kind = ""] = current.split("/");
    const names = await namesOf({ ...given, operands: [kind] }, context);
    return names.map((name) => `${kind}/${name}`);
  }
  const [first, ...named] = operands;
  if (first === undefined) return Array.isArray(command.completes) ? command.completes : KIND_WORDS;
  const isFull = first.includes("/") || (command.completesNames === "one" && named.length > 0);
  if (isFull) return [];
  const word = command.completes?.includes(first) ? containerWord(first) : undefined;
  const names =
    word === undefined
      ? await namesOf({ ...given, operands: [first] }, context)
      : await withDatastore(context, given, (store) => connectedNames(store, word));
  return names.filter((name) => !named.includes(name));
}

async function namesOf(given: Given, context: DatastoreAccess): Promise<readonly string[]> {
  const [selection, ...others] = parseSelections(given);
  if (selection === undefined || others.length > 0) return [];
  return withDatastore(context, given, async (store) => {
    const { readable } = await findAll(store, selection.kind, searchedNamespace(selection, given));
    const { kind } = selection;
    const names = readable.flatMap(({ resource }) => [
      ...(kind.otherNames?.(resource).names ?? []),
      resource.metadata.name,
    ]);
    // A container in several networks has an endpoint in each of them.
    return [...new Set(names)];
  });
}
