import { identity } from "../../identity.ts";
import { type Command, type CommandGroup, EXIT_OK, UsageError } from "../main/command.ts";
import { COMPLETION_SHELLS, completionScript, isCompletionShell } from "./script.ts";

/** The table of commands contains this command, so it is passed as a function. */
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
    async run(context, { operands }) {
      const [shell = "", ...more] = operands;
      if (!isCompletionShell(shell) || more.length > 0) {
        throw new UsageError(`"completion" requires exactly one shell: ${COMPLETION_SHELLS.join(", ")}`);
      }
      context.stdout(completionScript(shell, commands()));
      return EXIT_OK;
    },
  };
}
