/**
 * What a command of the admin tool is. Help, completion, docs/ and parsing all
 * follow from this description; a new command is one file and one row in
 * `commands.ts`.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { DATASTORE_OPTIONS } from "./datastore/options.ts";
import type { Interruption } from "./interruption.ts";
import type { Option } from "./option.ts";

export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILED | typeof EXIT_USAGE | Interruption["exitCode"];
export const EXIT_OK = 0;
/** It was asked rightly, and did not come out well. */
export const EXIT_FAILED = 1;
/** It was asked wrongly: unknown command or flag, missing argument. */
export const EXIT_USAGE = 2;

export interface Example {
  /** Without the name of the tool: `config check a.conflist`. */
  readonly command: string;
  readonly does: string;
}

export interface Command {
  readonly kind: "command";
  readonly name: string;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** More, for the command's own help. */
  readonly description?: string;
  /** As help shows it: `FILE…`. Absent when the command takes no argument. */
  readonly operands?: string;
  /** What completion offers for an argument. */
  readonly completes?: "files" | readonly string[];
  /** One of the same name as a common option stands in its place. */
  readonly options?: readonly Option[];
  /** Whether it works on the datastore, and takes the options that choose one. */
  readonly needsDatastore?: true;
  readonly examples: readonly Example[];
  run(context: Context, given: Given): Promise<ExitCode>;
}

export interface CommandGroup {
  readonly kind: "group";
  readonly name: string;
  readonly summary: string;
  readonly commands: readonly (Command | CommandGroup)[];
}

/** What the user wrote behind the command. */
export interface Given {
  readonly operands: readonly string[];
  readonly switches: ReadonlySet<string>;
  readonly values: ReadonlyMap<string, string>;
  /** The values of options that repeat. */
  readonly lists: ReadonlyMap<string, readonly string[]>;
}

/** All that a command may touch. Tests hand in their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  /** Of the terminal that stdout is; `undefined` or 0 where nobody knows. */
  readonly terminalWidth: number | undefined;
  /** Whether stderr is one: there, long work shows how far it is. */
  readonly showsProgress: boolean;
  /** Fires, with an `Interruption`, when the user stops the command: whatever waits ends, and the command with it. */
  readonly signal: AbortSignal;
  stdout(text: string): void;
  stderr(text: string): void;
  readFile(path: string): Promise<string>;
  readStdin(): Promise<string>;
  /** The names in a folder, sorted; `undefined` when the path is no folder. */
  listFolder(path: string): Promise<readonly string[] | undefined>;
  openDatastore(settings: DatastoreSettings): Promise<Datastore>;
  now(): Date;
  uuid(): string;
  /** A number from 0 up to 1. */
  random(): number;
  wait(milliseconds: number): Promise<void>;
}

/** Options every command takes. */
export const COMMON_OPTIONS: readonly Option[] = [
  {
    name: "output",
    letter: "o",
    value: "FORMAT",
    oneOf: ["text", "json"],
    summary: "How the answer is printed: text (the default) or json",
  },
  { name: "help", letter: "h", summary: "Explain this command and stop" },
];

export function optionsOf(command: Command): readonly Option[] {
  return [
    ...(command.options ?? []),
    ...(command.needsDatastore ? DATASTORE_OPTIONS : []),
    ...commonOptionsOf(command),
  ];
}

/** The common options that the command does not have in a form of its own. */
export function commonOptionsOf({ options = [] }: Command): readonly Option[] {
  return COMMON_OPTIONS.filter((common) => options.every(({ name }) => name !== common.name));
}

export function wantsJson(given: Given): boolean {
  return given.values.get("output") === "json";
}

/** A wrong call: its message goes to stderr with a hint at the help, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
