import { identity } from "../identity.ts";
import { VERSION } from "../version.ts";
import { type Command, EXIT_OK, wantsJson } from "./command.ts";

export const versionCommand: Command = {
  kind: "command",
  name: "version",
  summary: "Print the version of this tool",
  examples: [
    { command: "version", does: "Print the version" },
    { command: "version -o json", does: "Print it as JSON for a script" },
  ],
  async run(context, given) {
    const asJson = `${JSON.stringify({ clientVersion: VERSION })}\n`;
    context.stdout(wantsJson(given) ? asJson : `${identity.adminTool} ${VERSION}\n`);
    return EXIT_OK;
  },
};
