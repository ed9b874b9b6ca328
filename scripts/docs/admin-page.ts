/** docs/vendorctl.md, from the table of commands. */
import { COMMON_OPTIONS, type Command, type CommandGroup } from "../../src/admin/command.ts";
import { COMMANDS } from "../../src/admin/commands.ts";
import { CONFIG_FILE, DATASTORE_SETTINGS } from "../../src/admin/datastore/options.ts";
import type { Option } from "../../src/admin/option.ts";
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
    "- Exit codes: 0 done, 1 failed, 2 wrong usage (unknown command or flag, missing argument), 130 stopped by SIGINT (Ctrl-C), 143 by SIGTERM.",
    "- A command that is stopped ends at once and leaves nothing half-written: a write that is under way is finished, no other begins. A second signal",
    "  does not wait for it.",
    "- Answers go to stdout, complaints about the call to stderr.",
    "- A resource that could not be written carries `reason` and `retry` in the output of `-o json`: `resource-exists`, `resource-missing`, `resource-changed`",
    "  and others, as [errors.md](errors.md) lists them.",
    "- Colours are used only on a terminal, and never when `NO_COLOR` is set.",
    "- No secret is ever printed: user and password in URLs, tokens and keys show as `[redacted]`.",
    "",
    "## Options of every command",
    "",
    ...optionTable(COMMON_OPTIONS),
    "",
    "## Which datastore",
    "",
    `Each setting is taken from its option, else from its variable in the environment, else from \`${CONFIG_FILE}\``,
    `(\`--config\` names another file). Nothing said anywhere means etcd at \`http://127.0.0.1:2379\`.`,
    "",
    ...datastoreTable(),
    "",
    "The file is YAML or JSON; its fields stand at the top or below `spec`:",
    "",
    "```yaml",
    "datastoreType: etcdv3",
    "etcdEndpoints: https://10.0.0.1:2379,https://10.0.0.2:2379",
    "etcdCACertFile: /etc/ssl/etcd/ca.pem",
    "```",
    ...sections(COMMANDS, [tool]),
    "",
  ].join("\n");
}

function datastoreTable(): readonly string[] {
  const rows = DATASTORE_SETTINGS.map(
    ({ option, variable, field }) =>
      `| \`--${option.name} ${option.value}\` | \`${variable}\` | \`${field}\` | ${option.summary} |`,
  );
  return ["| Option | Variable | Field | Meaning |", "|---|---|---|---|", ...rows];
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
