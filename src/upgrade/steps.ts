/** All steps, in the order in which an upgrade carries them out. */

import { sidecarsStep } from "../alp/upgrade/step.ts";
import type { Step } from "./engine/step.ts";
import { addressListStep } from "./steps/address-list/step.ts";
import { allPodsStep } from "./steps/all-pods/step.ts";
import { chartStep } from "./steps/chart/step.ts";
import { clusterVersionStep } from "./steps/cluster-version/step.ts";
import { definitionsStep } from "./steps/definitions/step.ts";
import { formerObjectsStep } from "./steps/former-objects/step.ts";
import { hostEndpointsStep } from "./steps/host-endpoints/step.ts";
import { manifestStep } from "./steps/manifest/step.ts";
import { networkConfigStep } from "./steps/network-config/step.ts";
import { operatorStep } from "./steps/operator/step.ts";
import { operatorStatusStep } from "./steps/operator-status/step.ts";
import { ownerReferencesStep } from "./steps/owner-references/step.ts";
import { releaseOwnershipStep } from "./steps/release-ownership/step.ts";
import { releaseSecretsStep } from "./steps/release-secrets/step.ts";
import { remainingNodesStep } from "./steps/remaining-nodes/step.ts";
import { restoreOwnerReferencesStep } from "./steps/restore-owner-references/step.ts";
import { rolloutStep } from "./steps/rollout/step.ts";
import { storageStep } from "./steps/storage/step.ts";
import { unlockStep } from "./steps/unlock/step.ts";
import { upgradePolicyStep } from "./steps/upgrade-policy/step.ts";

export const STEPS: readonly Step[] = [
  networkConfigStep,
  ownerReferencesStep,
  // Rule 4 in its order: (a) the marks, (b) the definitions, (c) the chart, (d) the former records.
  releaseOwnershipStep,
  definitionsStep,
  storageStep,
  addressListStep,
  chartStep,
  operatorStep,
  manifestStep,
  rolloutStep,
  unlockStep,
  restoreOwnerReferencesStep,
  remainingNodesStep,
  allPodsStep,
  clusterVersionStep,
  formerObjectsStep,
  operatorStatusStep,
  releaseSecretsStep,
  sidecarsStep,
  upgradePolicyStep,
  hostEndpointsStep,
];
