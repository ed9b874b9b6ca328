/** Runs the command that the command line names, prints its help, or reports what is wrong with the call. */

import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { DatastoreNotice } from "../datastore/notice.ts";
import { FILE_OPTION } from "../manifest/options.ts";
import { UnknownKind } from "../resources/unknown-kind.ts";
import { stderrPage, stdoutPage } from "../terminal/page.ts";
import { parseArguments } from "./arguments.ts";
import {
  type Command,
  type CommandGroup,
  EXIT_FAILED,
  EXIT_OK,
  EXIT_USAGE,
  type ExitCode,
  optionsOf,
  UsageError,
} from "./command.ts";
import { COMMANDS } from "./commands.ts";
import type { ClusterAccess, Context } from "./context.ts";
import { helpText } from "./help.ts";
import { interruptible } from "./interruptible.ts";
import { Interruption, isInterruption } from "./interruption.ts";
import { splitLeadingOptions } from "./leading-options.ts";
import { reportError } from "./report-error.ts";
import { withRequestLog } from "./request-log.ts";

export async function runAdmin(args: readonly string[], surroundings: Context): Promise<ExitCode> {
  const tool = [identity.adminTool];
  const context = { ...surroundings, datastoreNotice: new DatastoreNotice((text) => surroundings.stderr(text)) };
  try {
    return await runIn(COMMANDS, tool, args, interruptible(context));
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
function endInterrupted(failure: unknown, context: ClusterAccess): ExitCode {
  const { signal } = context;
  if (!isInterruption(failure, signal)) reportError(context, failure);
  reportError(context, signal.reason);
  return signal.reason instanceof Interruption ? signal.reason.exitCode : EXIT_FAILED;
}

const HELP_WORDS: ReadonlySet<string> = new Set(["--help", "-h", "help"]);
const VERSION_WORDS: ReadonlySet<string> = new Set(["--version", "-v"]);
const COMMAND_LIKE = new Set([...HELP_WORDS, ...VERSION_WORDS]);

/** The words that name a command or a group; wrong options before them are ignored. */
function commandWords(args: readonly string[], group = COMMANDS): readonly string[] {
  const [first, ...rest] = afterLeadingOptions(args);
  const here = group.commands.find(({ name }) => name === first);
  if (here === undefined) return [];
  if (here.kind === "group") return [here.name, ...commandWords(rest, here)];
  const below = here.commands?.find(({ name }) => name === rest[0]);
  return below === undefined ? [here.name] : [here.name, below.name];
}

function afterLeadingOptions(args: readonly string[]): readonly string[] {
  try {
    return splitLeadingOptions(args, COMMAND_LIKE).rest;
  } catch {
    return [];
  }
}

/** Descends through the groups; `words` are those already consumed. */
async function runIn(
  group: CommandGroup,
  words: readonly string[],
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const { leading, rest: own } = splitLeadingOptions(args, COMMAND_LIKE);
  const [first, ...after] = own;
  const isVersionWord = group === COMMANDS && first !== undefined && VERSION_WORDS.has(first);
  // As an option it is the version of the tool, and nothing else.
  const rest = [...leading, ...after, ...(isVersionWord ? ["--client"] : [])];
  if (first !== undefined && HELP_WORDS.has(first)) {
    const asked = after.filter((word) => !HELP_WORDS.has(word));
    context.stdout(helpText(await descend(group, asked), [...words, ...asked], stdoutPage(context)));
    return EXIT_OK;
  }
  if (first === undefined) {
    context.stderr(helpText(group, words, stderrPage(context)));
    return EXIT_USAGE;
  }
  const chosen = await memberNamed(group, isVersionWord ? "version" : first);
  const path = [...words, chosen.name];
  if (chosen.kind === "group") return runIn(chosen, path, rest, context);
  const below = chosen.commands?.find(({ name }) => name === after[0]);
  return below === undefined
    ? runCommand(chosen, path, rest, context)
    : runCommand(below, [...path, below.name], [...leading, ...after.slice(1)], context);
}

async function runCommand(
  command: Command,
  words: readonly string[],
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const given = parseArguments(args, optionsOf(command));
  if (given.switches.has("help")) {
    context.stdout(helpText(command, words, stdoutPage(context)));
    return EXIT_OK;
  }
  const [unwanted] = given.operands;
  if (command.operands === undefined && unwanted !== undefined) throw await unwantedOperand(command, words, unwanted);
  try {
    const [{ run }, { checkingVersion }] = await Promise.all([command.load(), import("../version/version-check.ts")]);
    return await run(withRequestLog(checkingVersion(context, given, command), given), given);
  } catch (failure) {
    if (!(failure instanceof UnknownKind)) throw failure;
    const { suggestWorkload } = await import("./suggest-workload.ts");
    throw await suggestWorkload(failure, { command, given, context });
  }
}

async function unwantedOperand(command: Command, words: readonly string[], unwanted: string): Promise<UsageError> {
  const { commands, options, examples } = command;
  const below = commands?.find(({ name }) => name === unwanted);
  if (below !== undefined)
    return new UsageError(`Options follow "${below.name}": write ${words.join(" ")} ${below.name} [OPTIONS]`);
  if (commands !== undefined) {
    const { unknownCommand } = await import("./unknown-command.ts");
    return unknownCommand(command, unwanted);
  }
  const [example] = examples;
  const usual = example === undefined ? "" : `; for example: ${words[0]} ${example.command}`;
  const hint = options?.includes(FILE_OPTION) ? `; did you mean "-f ${unwanted}"?` : usual;
  return new UsageError(`"${words.slice(1).join(" ")}" does not take arguments: got ${quoted(unwanted)}${hint}`);
}

/** `help config check` is the same as `config check --help`. */
async function descend(group: CommandGroup, names: readonly string[]): Promise<Command | CommandGroup> {
  let found: Command | CommandGroup = group;
  for (const name of names) {
    if (found.kind === "command" && found.commands === undefined)
      throw new UsageError(`"${found.name}" has no command ${quoted(name)}`);
    found = await memberNamed(found, name);
  }
  return found;
}

async function memberNamed(group: Command | CommandGroup, name: string): Promise<Command | CommandGroup> {
  const found = group.commands?.find((command) => command.name === name);
  if (found !== undefined) return found;
  const { unknownCommand } = await import("./unknown-command.ts");
  throw unknownCommand(group, name);
}
