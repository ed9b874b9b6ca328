/**
 * What a command of the admin tool is. Help, completion, docs/ and parsing all
 * follow from this description; a new command is one file and one row in
 * `commands.ts`.
 */
export type ExitCode = typeof EXIT_OK | typeof EXIT_FAILED | typeof EXIT_USAGE;
export const EXIT_OK = 0;
/** It was asked rightly, and did not come out well. */
export const EXIT_FAILED = 1;
/** It was asked wrongly: unknown command or flag, missing argument. */
export const EXIT_USAGE = 2;

export interface Option {
  /** Long name without dashes: `effective`. */
  readonly name: string;
  /** One letter: `o` for `-o`. */
  readonly letter?: string;
  /** What the value is called in help; absent for a switch. */
  readonly value?: string;
  /** The only values allowed. */
  readonly oneOf?: readonly string[];
  readonly summary: string;
}

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
  readonly options?: readonly Option[];
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
}

/** All that a command may touch. Tests hand in their own. */
export interface Context {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Whether stdout is a terminal. */
  readonly isTerminal: boolean;
  stdout(text: string): void;
  stderr(text: string): void;
  readFile(path: string): Promise<string>;
  readStdin(): Promise<string>;
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
  return [...(command.options ?? []), ...COMMON_OPTIONS];
}

export function wantsJson(given: Given): boolean {
  return given.values.get("output") === "json";
}

/** A wrong call: its message goes to stderr with a hint at the help, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}
