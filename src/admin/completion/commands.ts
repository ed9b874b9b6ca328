import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import type { Command, CommandGroup } from "../main/command.ts";
import { COMPLETION_SHELLS, NAMES_COMMAND } from "./shells.ts";

/** The table of commands contains these commands, so it is passed as a function. */
export function completionCommand(commands: () => CommandGroup): Command {
  const tool = identity.adminTool;
  return {
    kind: "command",
    name: "completion",
    summary: "Print a shell completion script",
    operands: COMPLETION_SHELLS.join("|"),
    completes: COMPLETION_SHELLS,
    examples: [
      { command: `completion bash > /etc/bash_completion.d/${tool}`, does: "Enable completion in bash" },
      { command: `completion zsh > "\${fpath[1]}/_${tool}"`, does: "Enable completion in zsh" },
      { command: `completion fish > ~/.config/fish/completions/${tool}.fish`, does: "Enable completion in fish" },
    ],
    load: loadOnce(async () => (await import("./script.ts")).printingScript(commands)),
  };
}

export function completionNames(commands: () => CommandGroup): Command {
  return {
    kind: "command",
    name: NAMES_COMMAND,
    isHidden: true,
    summary: "Print the kinds or the names that can follow a command line; used by the completion scripts",
    operands: "-- WORD…",
    versionCheck: "none",
    examples: [{ command: `${NAMES_COMMAND} -- get ippool ""`, does: "Print the names of all pools" }],
    load: loadOnce(async () => (await import("./names.ts")).printingNames(commands)),
  };
}
