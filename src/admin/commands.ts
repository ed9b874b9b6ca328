/** Every command of the admin tool: one row each. */
import { identity } from "../identity.ts";
import type { CommandGroup } from "./command.ts";
import { completionCommand } from "./completion-command.ts";
import { configCheck } from "./config-check.ts";
import { versionCommand } from "./version-command.ts";

export const COMMANDS: CommandGroup = {
  kind: "group",
  name: identity.adminTool,
  summary: `${identity.adminTool} looks after ${identity.title} networks`,
  commands: [
    {
      kind: "group",
      name: "config",
      summary: "Work with network configs",
      commands: [configCheck],
    },
    completionCommand(() => COMMANDS),
    versionCommand,
  ],
};
