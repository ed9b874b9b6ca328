/** Runs the command that the command line names, prints its help, or reports what is wrong with the call. */
import { identity } from "../identity.ts";
import { nearestName } from "../model/nearest-name.ts";
import { quoted } from "../quote.ts";
import { parseArguments } from "./arguments.ts";
import {
  type Command,
  type CommandGroup,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  EXIT_USAGE,
  type ExitCode,
  optionsOf,
  UsageError,
} from "./command.ts";
import { COMMANDS } from "./commands.ts";
import { helpText, type Page } from "./help.ts";
import { interruptible } from "./interruptible.ts";
import { Interruption, isInterruption } from "./interruption.ts";
import { type Paint, paint, paintStderr } from "./paint.ts";
import { reportError } from "./report-error.ts";

export async function runAdmin(args: readonly string[], context: Context): Promise<ExitCode> {
  const tool = [identity.adminTool];
  const isVersionFlag = args[0] === "--version" || args[0] === "-v";
  try {
    const words = isVersionFlag ? ["version", ...args.slice(1)] : args;
    return await runIn(COMMANDS, tool, words, interruptible(context));
  } catch (failure) {
    if (context.signal.aborted) return endInterrupted(failure, context);
    if (failure instanceof UsageError) {
      reportError(context, failure);
      context.stderr(`Try "${[...tool, ...commandWords(args)].join(" ")} --help".\n`);
      return EXIT_USAGE;
    }
    reportError(context, failure);
    return EXIT_FAILED;
  }
}

/** A failure with another cause is reported too: it may be that of a write that had begun. */
function endInterrupted(failure: unknown, context: Context): ExitCode {
  const { signal } = context;
  if (!isInterruption(failure, signal)) reportError(context, failure);
  reportError(context, signal.reason);
  return signal.reason instanceof Interruption ? signal.reason.exitCode : EXIT_FAILED;
}

const HELP_WORDS: ReadonlySet<string> = new Set(["--help", "-h", "help"]);

/** The leading words that name a command or a group. */
function commandWords(args: readonly string[]): readonly string[] {
  const words: string[] = [];
  let here: Command | CommandGroup | undefined = COMMANDS;
  for (const word of args) {
    here = here.kind === "group" ? here.commands.find(({ name }) => name === word) : undefined;
    if (!here) break;
    words.push(word);
  }
  return words;
}

/** Descends through the groups; `words` are those already consumed. */
async function runIn(
  group: CommandGroup,
  words: readonly string[],
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const [first, ...rest] = args;
  if (first !== undefined && HELP_WORDS.has(first)) {
    const asked = rest.filter((word) => !HELP_WORDS.has(word));
    context.stdout(helpText(descend(group, asked), [...words, ...asked], pageOf(context, paint(context))));
    return EXIT_OK;
  }
  if (first === undefined) {
    context.stderr(helpText(group, words, pageOf(context, paintStderr(context))));
    return EXIT_USAGE;
  }
  const chosen = memberNamed(group, first);
  const path = [...words, first];
  return chosen.kind === "group" ? runIn(chosen, path, rest, context) : runCommand(chosen, path, rest, context);
}

async function runCommand(
  command: Command,
  words: readonly string[],
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const given = parseArguments(args, optionsOf(command));
  if (given.switches.has("help")) {
    context.stdout(helpText(command, words, pageOf(context, paint(context))));
    return EXIT_OK;
  }
  const [unwanted] = given.operands;
  if (command.operands === undefined && unwanted !== undefined) {
    throw new UsageError(`"${words.slice(1).join(" ")}" does not take arguments: got ${quoted(unwanted)}`);
  }
  return command.run(context, given);
}

function pageOf({ terminalWidth }: Context, paint: Paint): Page {
  return { paint, width: terminalWidth || Number.POSITIVE_INFINITY };
}

/** `help config check` is the same as `config check --help`. */
function descend(group: CommandGroup, names: readonly string[]): Command | CommandGroup {
  return names.reduce<Command | CommandGroup>((found, name) => {
    if (found.kind === "group") return memberNamed(found, name);
    throw new UsageError(`"${found.name}" has no command ${quoted(name)}`);
  }, group);
}

function memberNamed(group: CommandGroup, name: string): Command | CommandGroup {
  const found = group.commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  if (name.startsWith("-")) throw new UsageError(`Unknown option ${quoted(name)}; options follow the command`);
  const names = group.commands.map((command) => command.name);
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? `; available commands: ${names.join(", ")}` : `; did you mean "${nearest}"?`;
  throw new UsageError(`Unknown command ${quoted(name)}${hint}`);
}
