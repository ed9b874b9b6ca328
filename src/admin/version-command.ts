import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { type Command, EXIT_OK, wantsJson } from "./command.ts";

export const versionCommand: Command = {
  kind: "command",
  name: "version",
  summary: "Print the version of this tool",
  examples: [
    { command: "version", does: "Which release is this?" },
    { command: "version -o json", does: "The same, for a script" },
  ],
  async run(context, given) {
    const asJson = `${JSON.stringify({ clientVersion: VERSION })}\n`;
    context.stdout(wantsJson(given) ? asJson : `${identity.adminTool} ${VERSION}\n`);
    return EXIT_OK;
  },
};
