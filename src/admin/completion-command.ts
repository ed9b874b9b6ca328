import { identity } from "../identity.ts";
import { type Command, type CommandGroup, EXIT_OK, UsageError } from "./command.ts";
import { COMPLETION_SHELLS, completionScript, isCompletionShell } from "./completion.ts";

/** The table of commands holds this command, so it is handed in as a question. */
export function completionCommand(commands: () => CommandGroup): Command {
  const tool = identity.adminTool;
  return {
    kind: "command",
    name: "completion",
    summary: "Print the completion script of a shell",
    operands: COMPLETION_SHELLS.join("|"),
    completes: COMPLETION_SHELLS,
    examples: [
      { command: `completion bash > /etc/bash_completion.d/${tool}`, does: "For bash, on every login" },
      { command: `completion zsh > "\${fpath[1]}/_${tool}"`, does: "For zsh" },
      { command: `completion fish > ~/.config/fish/completions/${tool}.fish`, does: "For fish" },
    ],
    async run(context, { operands }) {
      const [shell = "", ...more] = operands;
      if (!isCompletionShell(shell) || more.length > 0) {
        throw new UsageError(`"completion" needs one shell: ${COMPLETION_SHELLS.join(", ")}`);
      }
      context.stdout(completionScript(shell, commands()));
      return EXIT_OK;
    },
  };
}
