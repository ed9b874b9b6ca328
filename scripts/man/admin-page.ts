/** The manual page of the admin tool, from the table of commands. Pure. */

import { CONFIG_FILE, DATASTORE_OPTIONS, DATASTORE_SETTINGS } from "../../src/admin/datastore/options.ts";
import { COMMON_OPTIONS, type Command, type CommandGroup, visibleCommands } from "../../src/admin/main/command.ts";
import { COMMANDS } from "../../src/admin/main/commands.ts";
import { valueText } from "../../src/admin/main/help.ts";
import type { Option } from "../../src/admin/main/option.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../src/config/installed-network-list.ts";
import { identity } from "../../src/identity.ts";
import type { Block, ManualPage } from "./manual-page.ts";

export function adminParts(): ManualPage["parts"] {
  const { adminTool: tool, product } = identity;
  return [
    { heading: "Synopsis", blocks: [{ kind: "lines", lines: [`${tool} COMMAND [OPTIONS]`, `${tool} help COMMAND`] }] },
    {
      heading: "Description",
      blocks: [
        paragraph(`${COMMANDS.summary}. Results go to stdout; errors, notes and progress go to stderr.`),
        paragraph(
          `If no option, variable or configuration file selects a datastore, it is that of the first network config in ` +
            `${NETWORK_CONFIG_DIRECTORY} that runs the plugin ${product}, otherwise etcd at http://127.0.0.1:2379.`,
        ),
      ],
    },
    { heading: "Commands", blocks: commandBlocks(COMMANDS, [tool]) },
    { heading: "Global options", blocks: COMMON_OPTIONS.map(optionItem) },
    {
      heading: "Datastore options",
      blocks: [paragraph("Of all commands that use the datastore."), ...DATASTORE_OPTIONS.map(optionItem)],
    },
    {
      heading: "Environment",
      blocks: DATASTORE_SETTINGS.map(({ variable, option }) => ({
        kind: "item",
        term: variable,
        text: option.summary,
      })),
    },
    {
      heading: "Files",
      blocks: [{ kind: "item", term: CONFIG_FILE, text: "Settings: each option of the datastore as a field." }],
    },
    {
      heading: "Exit status",
      blocks: [
        paragraph("0: success. 1: failure. 2: wrong usage. 130 or 143: interrupted by a signal. diff has its own."),
      ],
    },
  ];
}

function commandBlocks(group: Command | CommandGroup, words: readonly string[]): readonly Block[] {
  return visibleCommands(group).flatMap((member) => {
    const path = [...words, member.name];
    const own = member.kind === "group" ? [] : blocksOf(member, path);
    return [...own, ...commandBlocks(member, path)];
  });
}

function blocksOf(command: Command, words: readonly string[]): readonly Block[] {
  const operands = command.operands === undefined ? "" : ` ${command.operands}`;
  const [tool = ""] = words;
  const examples = command.examples.flatMap(({ command: line, does }) => [`# ${does}`, `${tool} ${line}`]);
  return [
    { kind: "subheading", text: `${words.join(" ")} [OPTIONS]${operands}` },
    paragraph(`${command.summary}.`),
    ...paragraphsIn(command.description ?? ""),
    ...(command.options ?? []).map(optionItem),
    ...(examples.length === 0 ? [] : [{ kind: "lines" as const, lines: examples }]),
  ];
}

/** Its lines are as long as those of the source; a row of a list begins with a space or a dash. */
function paragraphsIn(description: string): readonly Block[] {
  const texts = description.split(/\n\s*\n|\n(?=[ -])/).map((text) => text.replaceAll("\n", " ").trim());
  return texts.filter((text) => text !== "").map(paragraph);
}

function optionItem(option: Option): Block {
  const { name, letter, summary } = option;
  const term = [...(letter === undefined ? [] : [`-${letter}`]), `--${name}`].join(", ");
  return { kind: "item", term: `${term}${valueText(option)}`, text: summary };
}

function paragraph(text: string): Block {
  return { kind: "paragraph", text };
}
