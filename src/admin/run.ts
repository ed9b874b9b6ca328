/** From the words of the command line to a command, its help, or a word on what was wrong. */
import { identity } from "../identity.ts";
import { nearestName } from "../model/nearest-name.ts";
import { redact } from "../redaction.ts";
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
import { complain } from "./complaint.ts";
import { helpText } from "./help.ts";
import { paint } from "./paint.ts";

export async function runAdmin(args: readonly string[], context: Context): Promise<ExitCode> {
  const tool = [identity.adminTool];
  const isVersionFlag = args[0] === "--version" || args[0] === "-v";
  try {
    return await runIn(COMMANDS, tool, isVersionFlag ? ["version", ...args.slice(1)] : args, context);
  } catch (failure) {
    if (failure instanceof UsageError) {
      const { red } = paint(context);
      context.stderr(`${red("error:")} ${redact(failure.message)}\nTry "${identity.adminTool} --help".\n`);
      return EXIT_USAGE;
    }
    complain(context, failure);
    return EXIT_FAILED;
  }
}

/** Walks down the groups; `words` are those already walked. */
async function runIn(
  group: CommandGroup,
  words: readonly string[],
  args: readonly string[],
  context: Context,
): Promise<ExitCode> {
  const [first, ...rest] = args;
  if (first === "--help" || first === "-h" || first === "help") {
    context.stdout(helpText(descend(group, rest), [...words, ...rest], paint(context)));
    return EXIT_OK;
  }
  if (first === undefined) {
    context.stderr(helpText(group, words, paint(context)));
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
    context.stdout(helpText(command, words, paint(context)));
    return EXIT_OK;
  }
  const [unwanted] = given.operands;
  if (command.operands === undefined && unwanted !== undefined) {
    throw new UsageError(`"${words.slice(1).join(" ")}" takes no argument, and "${unwanted}" was given`);
  }
  return command.run(context, given);
}

/** `help config check` is `config check --help`. */
function descend(group: CommandGroup, names: readonly string[]): Command | CommandGroup {
  return names.reduce<Command | CommandGroup>((found, name) => {
    if (found.kind === "group") return memberNamed(found, name);
    throw new UsageError(`"${found.name}" has no command "${name}"`);
  }, group);
}

function memberNamed(group: CommandGroup, name: string): Command | CommandGroup {
  const found = group.commands.find((command) => command.name === name);
  if (found !== undefined) return found;
  if (name.startsWith("-")) throw new UsageError(`There is no option "${name}" here`);
  const names = group.commands.map((command) => command.name);
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? `; there are: ${names.join(", ")}` : `; did you mean "${nearest}"?`;
  throw new UsageError(`There is no command "${name}"${hint}`);
}
