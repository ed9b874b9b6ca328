/** The controllers that the settings enable, with a datastore of this kind. */
import { clusterPolicyStatusController } from "./cluster-policy-status.ts";
import { configurationController } from "./configuration.ts";
import type { Controller } from "./controller.ts";
import { hostEndpointController } from "./host-endpoints.ts";
import { namespaceController, policyController, serviceAccountController } from "./mirrors.ts";
import { NodeRecordController } from "./node-record.ts";
import type { ControllerName, ControllerSettings, NodeSettings } from "./settings.ts";
import { WorkloadEndpointController } from "./workload-endpoint.ts";

export interface ChosenController {
  readonly controller: Controller;
  readonly period: string;
  /** It writes to the orchestrator's API, not to the datastore. */
  readonly writesStatus?: true;
}

export interface Choice {
  readonly controllers: readonly ChosenController[];
  /** Enabled, but without anything to do. */
  readonly idle: readonly ControllerName[];
}

const CONFIGURATION_PERIOD = "5m";

export function chooseControllers(settings: ControllerSettings, isEtcd: boolean): Choice {
  const { node, ...copying } = settings.running.controllers;
  const names = Object.keys(copying) as readonly (keyof typeof copying)[];
  const copiers = names.map((name) => ({
    controller: copierNamed(name),
    period: copying[name]?.reconcilerPeriod ?? "",
  }));
  return {
    controllers: [
      { controller: configurationController(settings), period: CONFIGURATION_PERIOD },
      // With the orchestrator's API as the datastore, its objects are read directly: there is nothing to copy.
      ...(isEtcd ? copiers : []),
      ...(copying.policy === undefined ? [] : [statusController(copying.policy.reconcilerPeriod)]),
      ...(node === undefined ? [] : nodeControllers(node, isEtcd)),
    ],
    idle: isEtcd ? [] : names,
  };
}

function statusController(period: string): ChosenController {
  return { controller: clusterPolicyStatusController, period, writesStatus: true };
}

function copierNamed(name: Exclude<ControllerName, "node">): Controller {
  switch (name) {
    case "policy":
      return policyController;
    case "namespace":
      return namespaceController;
    case "serviceAccount":
      return serviceAccountController;
    case "workloadEndpoint":
      return new WorkloadEndpointController();
  }
}

/** That of host endpoints also runs if they are disabled: it removes those that exist. */
function nodeControllers(
  { reconcilerPeriod: period, syncLabels, hostEndpoint: { autoCreate } }: NodeSettings,
  isEtcd: boolean,
): readonly ChosenController[] {
  const records = { controller: new NodeRecordController(syncLabels === "Enabled"), period };
  return [...(isEtcd ? [records] : []), { controller: hostEndpointController(autoCreate), period }];
}
