/** KubeControllersConfiguration: which controllers run, and their settings. There is one, `default`. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { durationField } from "./duration-field.ts";
import { defineResource, type Resource } from "./resource.ts";

/** The sections of `spec.controllers`. Only controllers with a section run, once there is any. */
export const CONTROLLERS = ["policy", "namespace", "serviceAccount", "workloadEndpoint", "node"] as const;

const NOT_A_PORT = 'is not a port; use a whole number from 1 to 65535, or 0 for "no metrics"';
const switchField = v.picklist(["Enabled", "Disabled"]);
const period = { reconcilerPeriod: v.exactOptional(durationField("5m")) };

const specSchema = v.object({
  healthChecks: v.exactOptional(switchField),
  prometheusMetricsPort: v.exactOptional(
    v.pipe(v.number(), v.integer(NOT_A_PORT), v.minValue(0, NOT_A_PORT), v.maxValue(65_535, NOT_A_PORT)),
  ),
  controllers: v.exactOptional(
    v.object({
      policy: v.exactOptional(v.object(period)),
      namespace: v.exactOptional(v.object(period)),
      serviceAccount: v.exactOptional(v.object(period)),
      workloadEndpoint: v.exactOptional(v.object(period)),
      node: v.exactOptional(
        v.object({
          ...period,
          syncLabels: v.exactOptional(switchField),
          leakGracePeriod: v.exactOptional(durationField("15m")),
          hostEndpoint: v.exactOptional(v.object({ autoCreate: v.exactOptional(switchField) })),
        }),
      ),
    }),
  ),
});

export type KubeControllersConfigurationSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type KubeControllersConfiguration = Resource<"KubeControllersConfiguration", KubeControllersConfigurationSpec>;

export const kubeControllersConfiguration = defineResource({
  kind: "KubeControllersConfiguration",
  api: PRODUCT_API,
  namespaced: false,
  onlyName: "default",
  spec: v.optional(specSchema, {}),
  complete: (spec): KubeControllersConfigurationSpec => spec,
});
