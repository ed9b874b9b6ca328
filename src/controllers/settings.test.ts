import { describe, expect, test } from "bun:test";
import { CONTROLLERS } from "../model/kube-controllers-configuration.ts";
import { controllerSettings } from "./settings.ts";

const etcd = { isEtcd: true };
const enabled = (environment: Record<string, string>, spec = {}) =>
  Object.keys(controllerSettings(environment, spec, etcd).running.controllers);

describe("the settings of the controllers", () => {
  test("run all of them by default", () => {
    expect(controllerSettings({}, undefined, etcd)).toEqual({
      running: {
        healthChecks: "Enabled",
        prometheusMetricsPort: 9094,
        controllers: {
          policy: { reconcilerPeriod: "5m" },
          namespace: { reconcilerPeriod: "5m" },
          serviceAccount: { reconcilerPeriod: "5m" },
          workloadEndpoint: { reconcilerPeriod: "5m" },
          node: {
            reconcilerPeriod: "5m",
            syncLabels: "Enabled",
            leakGracePeriod: "15m",
            hostEndpoint: { autoCreate: "Disabled" },
          },
        },
      },
      environmentVars: {},
    });
  });

  test("run those that have a section in the resource", () => {
    expect(enabled({}, { controllers: { node: {}, policy: { reconcilerPeriod: "1m" } } })).toEqual(["policy", "node"]);
    expect(enabled({}, { controllers: {} })).toEqual([]);
    expect(enabled({}, {})).toEqual([...CONTROLLERS]);
  });

  test.each([
    ["node", ["node"]],
    ["policy, profile,workloadendpoint", ["policy", "namespace", "serviceAccount", "workloadEndpoint"]],
    ["serviceAccount,NAMESPACE", ["namespace", "serviceAccount"]],
  ])("run those of ENABLED_CONTROLLERS, %p, whatever the resource says", (list, wanted) => {
    expect(enabled({ ENABLED_CONTROLLERS: list }, { controllers: {} })).toEqual(wanted);
  });

  test("take the environment over the resource over the defaults", () => {
    const spec = {
      controllers: { node: { reconcilerPeriod: "2m", syncLabels: "Disabled", leakGracePeriod: "1m" } },
    } as const;

    expect(controllerSettings({ RECONCILER_PERIOD: "3m", AUTO_HOST_ENDPOINTS: "enabled" }, spec, etcd)).toMatchObject({
      running: {
        controllers: {
          node: {
            reconcilerPeriod: "3m",
            syncLabels: "Disabled",
            leakGracePeriod: "1m",
            hostEndpoint: { autoCreate: "Enabled" },
          },
        },
      },
      environmentVars: { RECONCILER_PERIOD: "3m", AUTO_HOST_ENDPOINTS: "enabled" },
    });
  });

  test("sync no labels with the orchestrator's API as the datastore", () => {
    const { running } = controllerSettings({ SYNC_NODE_LABELS: "enabled" }, undefined, { isEtcd: false });

    expect(running.controllers.node?.syncLabels).toBe("Disabled");
  });

  test.each([
    [{ ENABLED_CONTROLLERS: "polcy" }, 'ENABLED_CONTROLLERS: "polcy" is not a controller; did you mean "policy"?'],
    [{ RECONCILER_PERIOD: "5" }, 'RECONCILER_PERIOD: "5" is not a period; use for example "5m"'],
    [{ RECONCILER_PERIOD: "0s" }, 'RECONCILER_PERIOD: "0s" is not a period; use for example "5m"'],
    [{ AUTO_HOST_ENDPOINTS: "yes" }, 'AUTO_HOST_ENDPOINTS: "yes" is not a switch; use "enabled" or "disabled"'],
  ])("refuse %p", (environment, message) => {
    expect(() => controllerSettings(environment, undefined, etcd)).toThrow(message);
  });
});
