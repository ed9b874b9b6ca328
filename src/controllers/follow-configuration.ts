/** Follows the KubeControllersConfiguration: runs the controllers with its settings, and starts them again when it changes. */
import { startReplica } from "../datastore/replica.ts";
import { CONFIGURATION_KEY } from "./configuration.ts";
import { STORED_KINDS } from "./facts.ts";
import { type ControllersMeans, RunningControllers } from "./run-controllers.ts";
import { type ControllerSettings, controllerSettings } from "./settings.ts";

export interface FollowMeans extends ControllersMeans {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Called with each set of controllers that starts, for health and metrics. */
  readonly started: (settings: ControllerSettings, controllers: RunningControllers) => void;
}

interface Running {
  readonly settings: ControllerSettings;
  stop(): Promise<void>;
}

/** Resolves when the signal is aborted. */
export async function followConfiguration(means: FollowMeans): Promise<void> {
  const { environment, isEtcd, store, signal, elapsed, wait, random } = means;
  const report = ({ message }: Error) => means.log(message, "WARNING");
  const options = { signal, report, clock: { now: elapsed, wait }, random };
  const replica = startReplica(store, { configurations: STORED_KINDS.configurations }, options);
  let running: Running | undefined;
  for await (const { snapshot } of replica.updates()) {
    const held = snapshot.configurations.held(CONFIGURATION_KEY);
    // What cannot be read changes nothing; the replica has reported it.
    if (held?.kind === "unreadable" && running !== undefined) continue;
    const spec = held?.kind === "readable" ? held.value.spec : undefined;
    const settings = controllerSettings(environment, spec, { isEtcd });
    if (!Bun.deepEquals(settings, running?.settings)) {
      await running?.stop();
      running = start(settings, means);
    }
  }
  await running?.stop();
  await replica.ended;
}

function start(settings: ControllerSettings, means: FollowMeans): Running {
  const ending = new AbortController();
  const signal = AbortSignal.any([means.signal, ending.signal]);
  const controllers = new RunningControllers(settings, { ...means, signal });
  means.started(settings, controllers);
  const ended = controllers.run();
  return {
    settings,
    stop: () => {
      ending.abort();
      return ended;
    },
  };
}
