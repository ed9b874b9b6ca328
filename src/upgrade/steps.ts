/** All steps, in the order in which an upgrade carries them out. */
import type { Step } from "./step.ts";
import { addressListStep } from "./steps/address-list.ts";
import { allPodsStep } from "./steps/all-pods.ts";
import { chartStep } from "./steps/chart.ts";
import { clusterVersionStep } from "./steps/cluster-version.ts";
import { definitionsStep } from "./steps/definitions.ts";
import { formerObjectsStep } from "./steps/former-objects.ts";
import { hostEndpointsStep } from "./steps/host-endpoints.ts";
import { manifestStep } from "./steps/manifest.ts";
import { networkConfigStep } from "./steps/network-config.ts";
import { operatorStep } from "./steps/operator.ts";
import { operatorStatusStep } from "./steps/operator-status.ts";
import { ownerReferencesStep } from "./steps/owner-references.ts";
import { releaseOwnershipStep } from "./steps/release-ownership.ts";
import { releaseSecretsStep } from "./steps/release-secrets.ts";
import { remainingNodesStep } from "./steps/remaining-nodes.ts";
import { restoreOwnerReferencesStep } from "./steps/restore-owner-references.ts";
import { rolloutStep } from "./steps/rollout.ts";
import { sidecarsStep } from "./steps/sidecars.ts";
import { storageStep } from "./steps/storage.ts";
import { unlockStep } from "./steps/unlock.ts";
import { upgradePolicyStep } from "./steps/upgrade-policy.ts";

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
