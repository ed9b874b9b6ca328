/**
 * The sidecars of this node's pods: fed with the policies of their pods, known to the kernel while they report, and named
 * on their pods.
 */

import { labelsOf, metricText } from "../../health/metrics.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { onceEach } from "../../log/once-each.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { aborted } from "../../timers.ts";
import { VERSION } from "../../version.ts";
import type { Enforcement } from "../agent-access.ts";
import { SidecarStates } from "../state/sidecar-states.ts";
import { RecoveredSidecars, readSidecarInterfaces } from "./recovered-sidecars.ts";
import { SidecarAnnotations } from "./sidecar-annotations.ts";
import { type FeedFacts, SidecarFeed, type SidecarReleases } from "./sidecar-feed.ts";
import type { SidecarVolumes } from "./sidecar-volumes.ts";
import { annotateEndpoint, annotatePod } from "./write-annotation.ts";

export interface FedSidecars {
  /** In the text format of Prometheus. */
  metrics(): string;
  /** The kernel has what the compiler knows now. */
  policyChanged(): void;
  /** Resolves when the signal is aborted. Rejects if it cannot go on. */
  run(signal: AbortSignal): Promise<void>;
}

/** How long the sidecars of the previous agent may take to report again, from the first time that they can. */
const AGAIN_MILLISECONDS = 2_000;

export function feedSidecars(volumes: SidecarVolumes, enforcement: Enforcement): FedSidecars {
  const { compiler, keeper, log, network, means } = enforcement;
  const { elapsed, wait } = means.clock;
  const warn = (message: string) => log(message, "WARNING");
  const endpoints = () => compiler.localEndpoints;
  const hasPodUids = network.settings.kind === "orchestrator";
  // By its name alone a pod cannot be distinguished from the one that it replaced while no agent was there.
  const recovered = new RecoveredSidecars(
    readSidecarInterfaces(means.kernel),
    hasPodUids ? volumes.recovered : new Set(),
  );
  const begun = Promise.withResolvers<void>();
  let releases: SidecarReleases = new Map();
  const reporting = () => recovered.with(new Set(releases.keys()), endpoints());
  compiler.setSidecars(reporting());
  const writer = annotationWriter(enforcement);
  const annotations = new SidecarAnnotations({
    ...{ endpoints, elapsed, wait, report: onceEach(warn).report },
    releases: () => releases,
    write: writer.write,
  });
  const feed = new SidecarFeed({
    ...{ volumes, endpoints, elapsed, wait, report: onceEach(warn).report },
    ...{ version: VERSION, hasPodUids },
    states: new SidecarStates(compiler),
    reporting(now) {
      releases = now;
      keeper.updateSidecars(reporting());
      annotations.changed();
    },
  });
  const forgetRecovered = async (signal: AbortSignal) => {
    await Promise.race([begun.promise, aborted(signal)]);
    await wait(AGAIN_MILLISECONDS, signal);
    if (signal.aborted) return;
    recovered.forget();
    keeper.updateSidecars(reporting());
  };
  return {
    metrics: () => feedMetrics(feed.facts),
    policyChanged() {
      begun.resolve();
      feed.policyChanged();
      annotations.changed();
    },
    async run(signal) {
      const ending = new AbortController();
      const stop = AbortSignal.any([signal, ending.signal]);
      const loops = [feed.run(stop), annotations.run(stop), forgetRecovered(stop)];
      try {
        await Promise.all(loops);
      } finally {
        ending.abort();
        await Promise.allSettled(loops);
        await writer.close();
      }
    },
  };
}

/** In the text format of Prometheus. */
export function feedMetrics({ reporting, updates, refused }: FeedFacts): string {
  const rows = [
    ["sidecars", "gauge", "Sidecars of this node that report and decide about requests", [["", reporting]]],
    ["sidecar_updates_total", "counter", "Updates that were sent to sidecars", [["", updates]]],
    [
      "sidecar_connections_refused_total",
      "counter",
      "Connections to the sockets of sidecars that the agent has ended",
      Array.from(refused, ([reason, count]) => [labelsOf({ reason }), count] as const),
    ],
  ] as const;
  return rows
    .map(([name, type, help, samples]) => metricText(identity.nodeAgent, { name, type, help }, samples))
    .join("");
}

interface AnnotationWriter {
  write(key: string, endpoint: WorkloadEndpoint, release: string | undefined): Promise<void>;
  close(): Promise<void>;
}

function annotationWriter({ means, network, store, log }: Enforcement): AnnotationWriter {
  const { settings } = network;
  if (settings.kind !== "orchestrator") {
    return { write: (key, _, release) => annotateEndpoint(store, key, release), close: async () => {} };
  }
  let client: KubeClient | undefined;
  return {
    async write(_, endpoint, release) {
      client ??= await means.openKubeClient(settings.access, (message) => log(message, "WARNING"));
      await annotatePod(client, endpoint, release);
    },
    async close() {
      await client?.close();
    },
  };
}
