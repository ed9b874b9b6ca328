/** One replica of the controllers: the product's own process, on the clock and the connections of the simulation. */
import { ControllersProcess } from "../../src/controllers/controllers-process.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { type ReplicaMeans, SimulatedReplica } from "./simulated-replica.ts";

export interface SimulatedControllersMeans extends ReplicaMeans {
  /** New connections, for each process that starts. */
  readonly openStore: (process: SimulatedProcess) => Datastore;
  readonly openApi: (process: SimulatedProcess) => KubeClient;
  readonly isEtcd: boolean;
  readonly environment?: Readonly<Record<string, string>>;
}

export class SimulatedControllers extends SimulatedReplica<ControllersProcess> {
  constructor(means: SimulatedControllersMeans) {
    const { openStore, openApi, isEtcd, environment = {} } = means;
    super(means, ({ process, identity, log }) => {
      const { now, elapsed, wait, signal, random } = process;
      return new ControllersProcess({
        client: openApi(process),
        store: openStore(process),
        isEtcd,
        environment,
        identity,
        now,
        elapsed,
        wait,
        random: () => random.next(),
        signal,
        log,
        started: () => {},
      });
    });
  }
}
