/** All steps, in the order in which an upgrade carries them out. */
import type { Step } from "./step.ts";

export const STEPS: readonly Step[] = [];
