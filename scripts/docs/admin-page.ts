/** docs/vendorctl.md, from the table of commands. */
import { COMMON_OPTIONS, type Command, type CommandGroup, type Option } from "../../src/admin/command.ts";
import { COMMANDS } from "../../src/admin/commands.ts";
import { identity } from "../../src/identity.ts";

export function adminPage(): string {
  const tool = identity.adminTool;
  return [
    `# ${tool}`,
    "",
    "<!-- Written by `make fmt` from src/admin/commands.ts. Do not edit. -->",
    "",
    `${COMMANDS.summary}. \`${tool} COMMAND --help\` explains a command; \`${tool} help COMMAND\` is the same.`,
    "",
    "- Exit codes: 0 done, 1 failed, 2 wrong usage (unknown command or flag, missing argument).",
    "- Answers go to stdout, complaints about the call to stderr.",
    "- Colours are used only on a terminal, and never when `NO_COLOR` is set.",
    "- No secret is ever printed: user and password in URLs, tokens and keys show as `[redacted]`.",
    "",
    "## Options of every command",
    "",
    ...optionTable(COMMON_OPTIONS),
    ...sections(COMMANDS, [tool]),
    "",
  ].join("\n");
}

function sections(group: CommandGroup, words: readonly string[]): readonly string[] {
  return group.commands.flatMap((member) => {
    const path = [...words, member.name];
    return member.kind === "group" ? sections(member, path) : commandSection(member, path);
  });
}

function commandSection(command: Command, words: readonly string[]): readonly string[] {
  const operands = command.operands === undefined ? "" : ` ${command.operands}`;
  return [
    "",
    `## ${words.join(" ")}`,
    "",
    `${command.summary}.`,
    ...(command.description === undefined ? [] : ["", command.description]),
    "",
    "```sh",
    `${words.join(" ")} [OPTIONS]${operands}`,
    ...command.examples.flatMap(({ command: line, does }) => ["", `# ${does}`, `${words[0]} ${line}`]),
    "```",
    ...(command.options === undefined ? [] : ["", ...optionTable(command.options)]),
  ];
}

function optionTable(options: readonly Option[]): readonly string[] {
  const rows = options.map(({ name, letter, value, summary }) => {
    const written = [...(letter === undefined ? [] : [`-${letter}`]), `--${name}`].join(", ");
    return `| \`${written}${value === undefined ? "" : ` ${value}`}\` | ${summary} |`;
  });
  return ["| Option | Meaning |", "|---|---|", ...rows];
}
