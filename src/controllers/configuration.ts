/**
 * Keeps the KubeControllersConfiguration `default`: it exists, and its status says what runs.
 */
import { KUBE_CONTROLLERS_CONFIGURATION } from "../model/kinds.ts";
import { CONTROLLERS } from "../model/kube-controllers-configuration.ts";
import type { Controller, Proposal } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";
import type { ControllerSettings } from "./settings.ts";

const NAME = { name: "default" };
export const CONFIGURATION_KEY = KUBE_CONTROLLERS_CONFIGURATION.key(NAME);

/**
 * Only controllers with a section run, once there is any section: a patch of one setting must not end the others. The
 * sections are empty, so that new defaults of a release take effect.
 */
const EVERY_CONTROLLER = Object.fromEntries(CONTROLLERS.map((name) => [name, {}]));

/** `settings`: those that all controllers run with. */
export function configurationController({ running, environmentVars }: ControllerSettings): Controller {
  const { codec } = KUBE_CONTROLLERS_CONFIGURATION;
  const status = { runningConfig: running, environmentVars };
  const key = CONFIGURATION_KEY;
  return {
    name: "configuration",
    follows: { orchestrator: [], stored: ["configurations"] },
    keysOf: ({ stored }: FactsUpdate) => (stored.configurations === undefined ? [] : [key]),
    allKeys: () => [key],
    decide: (_, { stored }: Facts): Proposal | undefined => {
      const held = stored.configurations.held(key);
      if (held === undefined) {
        const created = codec.write({ ...codec.make(NAME, { controllers: EVERY_CONTROLLER }), status });
        return { changes: [{ kind: "create", key, value: created }], reason: "created the configuration" };
      }
      // One that cannot be read is for its author to repair.
      if (held.kind === "unreadable" || Bun.deepEquals(held.value.status, status)) return undefined;
      const updated = codec.write({ ...held.value, status });
      return {
        changes: [{ kind: "update", key, value: updated, revision: held.revision }],
        reason: "wrote what runs to the status of the configuration",
      };
    },
  };
}
