import { identity } from "../../identity.ts";
import type { CommandGroup } from "../main/command.ts";
import { upgradeApply } from "./apply.ts";
import { upgradeDetect } from "./detect.ts";
import { draftPolicyCommand } from "./draft-policy.ts";
import { upgradePlan } from "./plan.ts";
import { upgradeRollback } from "./rollback.ts";
import { upgradeStatus } from "./status.ts";
import { upgradeVerify } from "./verify.ts";

export const UPGRADE_COMMANDS: CommandGroup = {
  kind: "group",
  name: "upgrade",
  summary: `Upgrade ${identity.title} in the cluster to the release of this tool`,
  commands: [
    upgradeDetect,
    upgradePlan,
    upgradeApply,
    upgradeVerify,
    upgradeStatus,
    upgradeRollback,
    draftPolicyCommand,
  ],
};
