/** The help text of a command or a group, generated from its description. */

import { DATASTORE_OPTIONS } from "../datastore/options.ts";
import { type Page, stdoutPage, wrapped } from "../terminal/page.ts";
import {
  COMMON_OPTIONS,
  type Command,
  type CommandGroup,
  commonOptionsOf,
  EXIT_OK,
  type ExitCode,
  type Given,
  visibleCommands,
  wantsJson,
} from "./command.ts";
import type { Call, Terminal } from "./context.ts";
import type { Option } from "./option.ts";

/** `words`: the command line that leads to the subject, starting with the tool's name. */
export function helpText(subject: Command | CommandGroup, words: readonly string[], page: Page): string {
  const call = words.join(" ");
  const body = subject.kind === "group" ? groupHelp(subject, call, page) : commandHelp(subject, words, page);
  return `${wrapped(subject.summary, page.width).join("\n")}\n\n${body.join("\n")}\n`;
}

function groupHelp(group: CommandGroup, call: string, { paint, width }: Page): readonly string[] {
  return [
    `${paint.bold("Usage:")} ${call} COMMAND [OPTIONS]`,
    "",
    paint.bold("Commands:"),
    ...columns(
      visibleCommands(group).map(({ name, summary }) => [name, summary]),
      width,
    ),
    "",
    paint.bold("Global options:"),
    ...columns(COMMON_OPTIONS.map(optionRow), width),
    "",
    ...wrapped(`Run "${call} COMMAND --help" for help on a command.`, width),
    ...wrapped("Exit codes: 0 success, 1 failure, 2 wrong usage.", width),
  ];
}

function commandHelp(command: Command, words: readonly string[], { paint, width }: Page): readonly string[] {
  const operands = command.operands === undefined ? "" : ` ${command.operands}`;
  const tool = words[0] ?? "";
  const description = command.description?.split("\n").flatMap((line) => wrapped(line, width));
  const options = [...(command.options ?? []), ...commonOptionsOf(command)].map(optionRow);
  return [
    `${paint.bold("Usage:")} ${words.join(" ")} [OPTIONS]${operands}`,
    ...(description === undefined ? [] : ["", ...description]),
    "",
    paint.bold("Options:"),
    ...columns(options, width),
    ...commandsBelow(command, words.join(" "), { paint, width }),
    ...(command.needsDatastore
      ? ["", ...wrapped(`Run "${tool} ${OPTIONS_COMMAND}" for the options that select the datastore.`, width)]
      : []),
    "",
    paint.bold("Examples:"),
    ...command.examples.flatMap(({ command: line, does }) => [`  # ${does}`, `  ${tool} ${line}`]),
  ];
}

function commandsBelow(command: Command, call: string, { paint, width }: Page): readonly string[] {
  const rows = visibleCommands(command).map(({ name, summary }) => [name, summary] as const);
  if (rows.length === 0) return [];
  const more = wrapped(`Run "${call} COMMAND --help" for help on one of them.`, width);
  return ["", paint.bold("Commands:"), ...columns(rows, width), "", ...more];
}

const OPTIONS_COMMAND = "options";

export const optionsCommand: Command = {
  kind: "command",
  name: OPTIONS_COMMAND,
  summary: "List the options that commands share: those of the datastore, and those of all commands",
  versionCheck: "none",
  examples: [{ command: OPTIONS_COMMAND, does: "List them" }],
  load: async () => ({ run: printSharedOptions }),
};

async function printSharedOptions(context: Call & Terminal, given: Given): Promise<ExitCode> {
  if (wantsJson(given))
    context.stdout(`${JSON.stringify({ common: COMMON_OPTIONS, datastore: DATASTORE_OPTIONS }, undefined, 2)}\n`);
  else context.stdout(sharedOptionsText(stdoutPage(context)));
  return EXIT_OK;
}

/** What the help of every single command would repeat. */
function sharedOptionsText({ paint, width }: Page): string {
  return [
    paint.bold("Options of every command:"),
    ...columns(COMMON_OPTIONS.map(optionRow), width),
    "",
    paint.bold("Options of every command that uses the datastore:"),
    ...columns(DATASTORE_OPTIONS.map(optionRow), width),
    "",
    ...wrapped(
      "An option takes precedence over its environment variable, and that over the configuration file. If none of them " +
        "selects a datastore, it is that of the network that is installed on this host.",
      width,
    ),
    "",
  ].join("\n");
}

/** ` FILE`, or `[=WHERE]` if the value may be left out. */
export function valueText({ value, valueIfBare }: Option): string {
  if (value === undefined) return "";
  return valueIfBare === undefined ? ` ${value}` : `[=${value}]`;
}

function optionRow(option: Option): readonly [string, string] {
  const letter = option.letter === undefined ? "    " : `-${option.letter}, `;
  return [`${letter}--${option.name}${valueText(option)}`, option.summary];
}

/** If the second column would be narrower than this, it is printed below the first. */
const NARROWEST = 30;
const BELOW = "        ";

function columns(rows: readonly (readonly [string, string])[], width: number): readonly string[] {
  const first = Math.max(...rows.map(([left]) => left.length));
  const indent = " ".repeat(first + 4);
  if (width - indent.length < NARROWEST) {
    return rows.flatMap(([left, right]) => [
      `  ${left}`,
      ...wrapped(right, width - BELOW.length).map((line) => `${BELOW}${line}`),
    ]);
  }
  return rows.flatMap(([left, right]) =>
    wrapped(right, width - indent.length).map((line, index) =>
      index === 0 ? `  ${left.padEnd(first)}  ${line}` : `${indent}${line}`,
    ),
  );
}
