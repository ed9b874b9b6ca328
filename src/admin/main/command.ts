import { DATASTORE_OPTIONS } from "../datastore/options.ts";
import type { Context } from "./context.ts";
import type { Interruption } from "./interruption.ts";
import { LOG_LEVEL_OPTION, type Option } from "./option.ts";
/**
 * Defines a command of the admin tool. Help, completion, docs/ and argument
 * parsing are all derived from this description. A new command is a description
 * in `commands.ts` of its group, a file that exports `run`, and a row in
 * `main/commands.ts`.
 */

export type ExitCode =
  | typeof EXIT_OK
  | typeof EXIT_FAILED
  | typeof EXIT_USAGE
  | typeof EXIT_WOULD_DENY
  | Interruption["exitCode"];
export const EXIT_OK = 0;
/** The call was correct, but the command failed. */
export const EXIT_FAILED = 1;
/** The call was wrong: unknown command or flag, missing argument. */
export const EXIT_USAGE = 2;
/** Of `policy preview`: the change would deny something. */
export const EXIT_WOULD_DENY = 3;

export interface Example {
  /** Without the name of the tool: `config check a.conflist`. */
  readonly command: string;
  readonly does: string;
}

export interface Command {
  readonly kind: "command";
  readonly name: string;
  /** Not shown in help, docs and completion: for the tool's own scripts. */
  readonly isHidden?: true;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** More detail, shown in the command's own help. */
  readonly description?: string;
  /** As help shows it: `FILE…`. Absent if the command takes no arguments. */
  readonly operands?: string;
  /** What completion offers for an argument. */
  readonly completes?: "files" | readonly string[];
  /** Its arguments are a kind and the names of one or more resources of it; completion offers those in the datastore. */
  readonly completesNames?: "one" | "many";
  /** An option with the name of a common option replaces it. */
  readonly options?: readonly Option[];
  /** Commands below it: `flows top` beside `flows`. It takes no arguments itself. */
  readonly commands?: readonly Command[];
  /** The command uses the datastore, and accepts the options that select one. */
  readonly needsDatastore?: true;
  /** Absent: refuses to work on a cluster of a later release, and warns if it is an earlier one. "refuse": does not warn. */
  readonly versionCheck?: "none" | "refuse";
  readonly examples: readonly Example[];
  /** Only when the command is called: help, completion and docs need its description alone. */
  load(): Promise<CommandCode>;
}

/** What runs; usually a module. */
export interface CommandCode {
  run(context: Context, given: Given): Promise<ExitCode>;
}

export interface CommandGroup {
  readonly kind: "group";
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly (Command | CommandGroup)[];
}

/** The arguments that the user gave after the command name. */
export interface Given {
  readonly operands: readonly string[];
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, string>;
  /** The values of repeatable options. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
}

/** Options that every command accepts. */
export const COMMON_OPTIONS: readonly Option[] = [
  {
    name: "output",
    letter: "o",
    value: "FORMAT",
    oneOf: ["text", "json"],
    summary: "Output format: text (default) or json",
  },
  LOG_LEVEL_OPTION,
  { name: "help", letter: "h", summary: "Show help for the command" },
];

export function optionsOf(command: Command): readonly Option[] {
  return [
    ...(command.options ?? []),
    ...(command.needsDatastore ? DATASTORE_OPTIONS : []),
    ...commonOptionsOf(command),
  ];
}

/** The common options that the command does not replace with its own. */
export function commonOptionsOf({ options = [] }: Command): readonly Option[] {
  return COMMON_OPTIONS.filter((common) => options.every(({ name }) => name !== common.name));
}

/** The commands below it that users see. */
export function visibleCommands({ commands = [] }: Command | CommandGroup): readonly (Command | CommandGroup)[] {
  return commands.filter((member) => member.kind === "group" || !member.isHidden);
}

export function wantsJson(given: Given): boolean {
  return given.values.get("output") === "json";
}

/** A wrong call: its message goes to stderr with a pointer to the help, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
