/** One replica of the operator: the product's own process, on the clock and the connection of the simulation. */

import type { KubeClient } from "../../src/kube/api.ts";
import { openInstallationDatastore } from "../../src/operator/installation-datastore.ts";
import { OperatorProcess } from "../../src/operator/operator-process.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { type ReplicaMeans, SimulatedReplica } from "./simulated-replica.ts";

export interface SimulatedOperatorMeans extends ReplicaMeans {
  /** A new connection, for each process that starts. */
  readonly openApi: (process: SimulatedProcess) => KubeClient;
}

export class SimulatedOperator extends SimulatedReplica<OperatorProcess> {
  constructor(means: SimulatedOperatorMeans) {
    super(means, ({ process, identity, log }) => {
      const { now, elapsed, wait, signal, random } = process;
      const client = means.openApi(process);
      const environment = {};
      const newName = () => `${random.below(2 ** 31).toString(16)}-${random.below(2 ** 31).toString(16)}`;
      return new OperatorProcess({
        client,
        environment,
        openDatastore: openInstallationDatastore({ client, environment, warn: log, newMark: newName }),
        identity,
        signal,
        now,
        elapsed,
        wait,
        random: () => random.next(),
        newName,
        log,
      });
    });
  }
}
