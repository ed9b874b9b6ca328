/**
 * The node agent: its parts, which run until it is stopped. A part that fails is started again, and does not affect the others.
 *
 *   calls           a process of its own that serves the plugins' calls                            (calls/)
 *   network         everything that it does with the installed network: policy, routes, records, upkeep (network/)
 *   features        parts of rooms of their own: application layer policy                          (features.ts)
 *   node setup      in a pod: the plugin's access, the condition of the Node; else the host's tokens (node-setup/)
 */
import { statusAt } from "../file-status.ts";
import type { Watch } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import type { AgentProcess } from "./agent-process.ts";
import { callServerPart } from "./calls/call-server-process.ts";
import { agentFeatures } from "./features.ts";
import { networkPart } from "./network/network-part.ts";
import { writePodKubeconfig } from "./node-setup/pod-account.ts";
import { type AgentPart, superviseParts } from "./supervise.ts";

interface Means {
  readonly own: AgentProcess;
  readonly signal: AbortSignal;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly watch: Pick<Watch, "ask" | "patiently">;
  /** The arguments that start the call server. */
  readonly callServer: readonly string[];
  /** Those that start a collector of flows. */
  readonly collector: readonly string[];
  /** Only in a test build. */
  readonly furtherParts: readonly AgentPart[];
}

/** Until the signal is aborted. */
export async function runAgent({
  own,
  signal,
  wait,
  watch,
  callServer,
  collector,
  furtherParts,
}: Means): Promise<void> {
  const { environment, say } = own;
  const ofPod = writePodKubeconfig(environment);
  const ofHost = hostKubeconfig();
  const account = ofPod ?? ofHost;
  let arePodsRouted = () => false;
  const routed = (know: () => boolean) => {
    arePodsRouted = know;
  };
  const features = (await agentFeatures()).map((feature) => feature.start(own, wait));
  const parts = [
    callServerPart(callServer, own),
    networkPart({ environment, say, wait, account, routed, watch, features, collector }),
    ...features.flatMap((feature) => feature.parts),
    ...(await setupParts({ ...own, wait, ofPod, ofHost, arePodsRouted: () => arePodsRouted() })),
    ...furtherParts,
  ];
  await superviseParts(parts, {
    signal,
    report: (message) => say(message, {}, "WARNING"),
    elapsed: () => performance.now(),
    wait,
  });
}

interface SetupMeans extends Pick<AgentProcess, "environment" | "say">, Pick<Means, "wait"> {
  readonly ofPod: string | undefined;
  readonly ofHost: string | undefined;
  readonly arePodsRouted: () => boolean;
}

/** With the account of the agent's pod, or with the one that was made for the host. */
async function setupParts({ ofPod, ofHost, ...means }: SetupMeans): Promise<readonly AgentPart[]> {
  if (ofPod !== undefined) {
    const { podPart } = await import("./node-setup/pod-part.ts");
    return [podPart({ ...means, account: ofPod })];
  }
  if (ofHost === undefined) return [];
  const { hostTokensPart } = await import("./node-setup/host-tokens-part.ts");
  return [hostTokensPart({ ...means, account: ofHost })];
}

/** Of the account that was made for the agent of this host; `undefined` if agent and plugin share one. */
function hostKubeconfig(): string | undefined {
  const path = `${identity.configDirectory}/node-kubeconfig`;
  return statusAt(path) === undefined ? undefined : path;
}
