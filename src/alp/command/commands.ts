import type { CommandGroup } from "../../admin/main/command.ts";
import { alpStatus } from "./status.ts";
import { alpTemplate } from "./template.ts";

export const ALP_COMMANDS: CommandGroup = {
  kind: "group",
  name: "alp",
  summary: "Application layer policy: the sidecar beside the proxy of a service mesh",
  commands: [alpStatus, alpTemplate],
};
