/** The controllers of one process: the election, and what follows the datastore and the orchestrator. */

import { orchestratorMapping } from "../datastore/kube/orchestrator-mapping.ts";
import { openKubeStore } from "../datastore/kube/store.ts";
import { identity } from "../identity.ts";
import { openAllocator } from "../ipam/allocator.ts";
import { respectingLock } from "../ipam/respecting-lock.ts";
import type { KubeClient } from "../kube/api.ts";
import { Elector } from "../kube/election/elector.ts";
import { liveObjects, liveOwners } from "../kube/live-objects.ts";
import { ClusterGate } from "./cluster-gate.ts";
import { hasConsole, keepConsoleCertificate } from "./console/console-certificate.ts";
import { type FlowApiPorts, flowApiPorts, runFlowApi } from "./flows/run-flow-api.ts";
import { type FollowMeans, followConfiguration } from "./follow-configuration.ts";
import type { ControllersReport } from "./report.ts";
import type { RunningControllers } from "./run-controllers.ts";
import type { ControllerSettings } from "./settings.ts";

type Inherited = "store" | "isEtcd" | "environment" | "signal" | "elapsed" | "wait" | "random" | "log";

export interface ControllersProcessMeans extends Pick<FollowMeans, Inherited> {
  /** Of the orchestrator's API. */
  readonly client: KubeClient;
  /** Of this process; unique. */
  readonly identity: string;
  readonly now: () => Date;
  /** Called with the settings of each set of controllers that starts. */
  readonly started: (settings: ControllerSettings) => void;
}

export class ControllersProcess {
  readonly elector: Elector;
  private running: RunningControllers | undefined;
  private gate: ClusterGate | undefined;

  constructor(private readonly means: ControllersProcessMeans) {
    const { client, environment, now, elapsed, wait, log } = means;
    const lease = { namespace: namespaceIn(environment), name: identity.controllers, identity: means.identity };
    this.elector = new Elector({ client, ...lease, now, elapsed, wait, log });
  }

  /** For health and metrics. */
  get report(): ControllersReport {
    const { running, elector, gate, means } = this;
    return {
      controllers: running?.states,
      collector: running?.collectorState,
      usage: running?.usage,
      isLeading: gate?.isLeading() ?? false,
      clusterMismatch: gate?.mismatch,
      isDatastoreLocked: gate?.isDatastoreLocked ?? false,
      unconfirmedCluster: gate?.unconfirmed,
      electedAt: elector.askedAt,
      now: means.elapsed(),
    };
  }

  /** Resolves when the signal is aborted, and the lease is given back; closes the datastore and the client. */
  async run(): Promise<void> {
    const { client, environment, isEtcd, now, random, wait, signal, started, log } = this.means;
    const flows = flowApiPorts(environment);
    const isConsoleOn = hasConsole(environment);
    const orchestrator = openKubeStore({
      api: client,
      mappings: orchestratorMapping(now),
      close: () => client.close(),
    });
    const objects = liveObjects(client);
    const sides = { store: this.means.store, orchestrator, hasNodeRecords: isEtcd, ...objects };
    const gate = new ClusterGate({ sides, leadership: this.elector, wait, log });
    this.gate = gate;
    const store = respectingLock(this.means.store, (entry) => gate.requireSame(entry));
    const allocator = openAllocator(store, { now, random, wait: (milliseconds) => wait(milliseconds, signal) });
    // The lease outlives the writers.
    const written = new AbortController();
    const electing = this.elector.run(written.signal);
    const serving = [flows && this.serveFlows(flows), isConsoleOn && keepConsoleCertificate(this.servingMeans())];
    const comparing = gate.run(signal);
    try {
      await followConfiguration({
        ...{ ...this.means, ...objects, store, allocator, orchestrator, leadership: gate },
        owners: liveOwners(client),
        started: (settings, controllers) => {
          this.running = controllers;
          started(settings);
        },
      });
    } finally {
      await Promise.all(serving);
      written.abort();
      await Promise.all([electing, comparing]);
      await store.close();
      await orchestrator.close();
    }
  }

  /** Other replicas serve it too; the leading one keeps the certificates. */
  private serveFlows(ports: FlowApiPorts): Promise<void> {
    const { elapsed } = this.means;
    return runFlowApi({ ...this.servingMeans(), ports, elapsed });
  }

  private servingMeans() {
    const { client, environment, signal, now, wait, log } = this.means;
    const isLeading = () => this.elector.isLeading();
    return { client, namespace: namespaceIn(environment), isLeading, signal, now, wait, log };
  }
}

function namespaceIn(environment: ControllersProcessMeans["environment"]): string {
  return environment["POD_NAMESPACE"] ?? "kube-system";
}
