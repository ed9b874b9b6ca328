/** What to do with a plan that has just been made. Pure. */

import { identity } from "../../identity.ts";
import type { UpgradePlan } from "../../upgrade/engine/upgrade-plan.ts";
import { DEFAULT_PLAN_FILE } from "./options.ts";

/** Something has to be decided before it can be carried out. */
export function isBlocked({ steps }: Pick<UpgradePlan, "steps">): boolean {
  return steps.some(({ obstacles }) => obstacles.length > 0);
}

export function nextCommand(plan: Pick<UpgradePlan, "steps">, file: string): string {
  const saved = `The plan is saved in ${file}.`;
  if (isBlocked(plan)) {
    return `${saved} Decide what is named above, then plan again: ${identity.adminTool} upgrade plan\n`;
  }
  if (plan.steps.length === 0) return `${saved}\n`;
  const option = file === DEFAULT_PLAN_FILE ? "" : ` --plan ${file}`;
  return `${saved} Carry it out: ${identity.adminTool} upgrade apply${option}\n`;
}
