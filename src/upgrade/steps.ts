/** All steps, in the order in which an upgrade carries them out. */
import type { Step } from "./step.ts";
import { ownerReferencesStep } from "./steps/owner-references.ts";
import { restoreOwnerReferencesStep } from "./steps/restore-owner-references.ts";

export const STEPS: readonly Step[] = [ownerReferencesStep, restoreOwnerReferencesStep];
