/** `spec.admissionPolicies`: which groups of admission policies the API server evaluates. */
import * as v from "valibot";
import { switchField } from "./fields.ts";

export const ADMISSION_GROUPS = ["chosenAddresses", "recordedAddresses", "nodeAccounts"] as const;

export type AdmissionGroup = (typeof ADMISSION_GROUPS)[number];

export const admissionSchema = v.object({
  chosenAddresses: v.exactOptional(switchField),
  recordedAddresses: v.exactOptional(switchField),
  nodeAccounts: v.exactOptional(switchField),
});
