/** Generates docs/vendorctl.md from the table of commands. */

import { CONFIG_FILE, DATASTORE_SETTINGS, OTHER_CONFIG_FILE } from "../../src/admin/datastore/options.ts";
import { COMMON_OPTIONS, type Command, type CommandGroup, visibleCommands } from "../../src/admin/main/command.ts";
import { COMMANDS } from "../../src/admin/main/commands.ts";
import { valueText } from "../../src/admin/main/help.ts";
import type { Option } from "../../src/admin/main/option.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import { PEER_COMMANDS } from "./peer-commands.ts";

export function adminPage(): string {
  const tool = identity.adminTool;
  return [
    `# ${tool}`,
    "",
    "<!-- Written by `make fmt` from src/admin/main/commands.ts. Do not edit. -->",
    "",
    `${COMMANDS.summary}. \`${tool} COMMAND --help\` or \`${tool} help COMMAND\` shows the help of a command.`,
    "",
    "- Exit codes: 0 success, 1 failure, 2 wrong usage (unknown command or option, missing argument; `diff` has its own), 130 interrupted by SIGINT (Ctrl-C), 143 by SIGTERM.",
    "- An interrupted command stops at once and does not leave a write half done: a write in progress is completed, no further write starts. A second",
    "  signal stops the command without waiting for that write.",
    "- Results go to stdout; errors, notes and progress go to stderr.",
    "- With `-o json`, a resource that could not be written has `reason` (`resource-exists`, `resource-missing`, `resource-changed` and others, listed in",
    "  [errors.md](errors.md)) and `retry`.",
    "- If etcd does not answer for 2 seconds, a line on stderr says so and how long the command still waits: at most 16 seconds in all.",
    "- Tables fit the terminal: long names are shortened in the middle (`…`), addresses never; sentences in the last column are wrapped, or follow below the row.",
    "  On a narrow terminal columns are left out, the least useful first, which the header shows with `…`. `-o wide`, `--show-labels`, `--no-headers`, custom columns, and output",
    "  to a file or a pipe are never shortened. `describe` and `policy explain` leave nothing out: they break lines.",
    "- Colours are used only on a terminal, and never if `NO_COLOR` is set.",
    "- Secrets are never printed: user names and passwords in URLs, tokens and keys are replaced by `[redacted]`.",
    "",
    "## Global options",
    "",
    "These, `--namespace` and the datastore options may also be given before the command, as in kubectl.",
    "",
    ...optionTable(COMMON_OPTIONS),
    "",
    "## Datastore options",
    "",
    `Each setting is taken from its option, otherwise from its environment variable, otherwise from the configuration file \`${CONFIG_FILE}\``,
    `(\`-c\` or \`--config\` selects another file; without it \`${OTHER_CONFIG_FILE}\` is used if the usual file does not exist).`,
    "Settings are merged one by one: file and environment combine. A variable may also have the prefix " +
      `\`${identity.environmentPrefix}\`, and then takes precedence over the one without. An unknown field of the file is an error.`,
    "If none of them selects a datastore, it is that of the first network config in",
    `\`${NETWORK_CONFIG_DIRECTORY}\` that runs the plugin \`${identity.product}\`. If there is none, it is etcd at \`http://127.0.0.1:2379\`,`,
    "which is not written to unless it is initialized. A network config that cannot be used is an error ([more](datastores.md#which-one-the-admin-tool-uses)).",
    "Which network config it is from is said on stderr if it matters: when the command creates the datastore, if nothing is found and it is not initialized, before an error, by",
    "`datastore check`, and with `--log-level debug`.",
    "",
    ...datastoreTable(),
    "",
    "The configuration file is YAML or JSON; its fields are at the top level or under `spec`, with `apiVersion`, `kind` and `metadata` beside it:",
    "",
    "```yaml",
    "datastoreType: etcdv3",
    "etcdEndpoints: https://10.0.0.1:2379,https://10.0.0.2:2379",
    "etcdCACertFile: /etc/ssl/etcd/ca.pem",
    "```",
    ...sections(COMMANDS, [tool]),
    "",
    "## For users of calicoctl",
    "",
    "What its commands and options are here. Where an option means something else to kubectl, kubectl's meaning wins. Kinds have the names that it knows",
    `too (\`${tool} api-resources\` lists them); its FelixConfiguration is NodeAgentConfiguration.`,
    "",
    ...peerTable(),
    "",
  ].join("\n");
}

function datastoreTable(): readonly string[] {
  const rows = DATASTORE_SETTINGS.map(
    ({ option, isFileOnly, variable, field }) =>
      `| ${isFileOnly ? "" : `\`--${option.name} ${option.value}\``} | \`${variable}\` | \`${field}\` | ${option.summary} |`,
  );
  return ["| Option | Environment variable | Field | Meaning |", "|---|---|---|---|", ...rows];
}

function peerTable(): readonly string[] {
  const rows = PEER_COMMANDS.map(({ theirs, ours, differs }) => {
    const own =
      ours === undefined
        ? ""
        : ours
            .split(", ")
            .map((line) => `\`${line}\``)
            .join(", ");
    return `| \`${theirs.replaceAll("|", "\\|")}\` | ${own} | ${differs} |`;
  });
  return ["| calicoctl | Here | What differs |", "|---|---|---|", ...rows];
}

function sections(group: Command | CommandGroup, words: readonly string[]): readonly string[] {
  return visibleCommands(group).flatMap((member) => {
    const path = [...words, member.name];
    const own = member.kind === "group" ? [] : commandSection(member, path);
    return [...own, ...sections(member, path)];
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
  const rows = options.map((option) => {
    const { name, letter, summary } = option;
    const written = [...(letter === undefined ? [] : [`-${letter}`]), `--${name}`].join(", ");
    return `| \`${written}${valueText(option)}\` | ${summary} |`;
  });
  return ["| Option | Meaning |", "|---|---|", ...rows];
}
