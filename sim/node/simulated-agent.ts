/** The node agent of a simulated machine: the product's own loops, with the kernel, clock and files of the machine. */

import type { StartedFeature } from "../../src/agent/features.ts";
import type { AgentMeans } from "../../src/agent/means.ts";
import { readAgentNetwork } from "../../src/agent/network/agent-network.ts";
import { runNetwork } from "../../src/agent/network/run-network.ts";
import { superviseParts } from "../../src/agent/supervise.ts";
import { feedSidecars } from "../../src/alp/feed/feed-sidecars.ts";
import { natLockPath } from "../../src/config/run-directory.ts";
import { identity } from "../../src/identity.ts";
import { shareNetfilter } from "../../src/linux/shared-netfilter.ts";
import { aborted } from "../../src/timers.ts";
import { isFaultOfCode } from "../judge/crashes.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { type MachineMeans, uuidsOf } from "./node-means.ts";

/** Later than all that need a remedy. */
const KERNEL_RELEASE = "6.12.0";

export interface AgentWork {
  /** A part failed for a reason that lies in its own code; it is started again. */
  readonly crashed: (what: string) => void;
  readonly means: MachineMeans;
  readonly log: (message: string) => void;
}

/** Until the process is asked to end. */
export async function runAgent(process: SimulatedProcess, { means, log, crashed }: AgentWork): Promise<void> {
  const agentMeans = agentMeansOf(process, means);
  const { elapsed, wait } = agentMeans.clock;
  const netfilter = shareNetfilter(agentMeans.kernel);
  const run = async (signal: AbortSignal) => {
    const network = await readAgentNetwork(log, undefined, {
      listFolder: async (path) => means.files.list(path),
      readFile: async (path) => means.files.read(path) ?? "",
      env: {},
      hostName: async () => means.name,
    });
    if (network === undefined) throw new Error("no network is installed");
    await runNetwork(network, { means: agentMeans, signal, log, netfilter, features: [SIDECARS], routed: () => {} });
  };
  const supervision = { signal: process.signal, report: log, elapsed, wait };
  const parts = [{ name: "the installed network", run }].map((part) => ({
    ...part,
    run: (signal: AbortSignal) =>
      part.run(signal).catch((failure: unknown) => {
        if (isFaultOfCode(failure)) crashed(`has a part that fails, ${part.name}: ${failure}`);
        throw failure;
      }),
  }));
  await superviseParts(parts, supervision);
}

/** Without HTTP and BIRD. */
function agentMeansOf(process: SimulatedProcess, means: MachineMeans): AgentMeans {
  const { files, machineIdentity } = means;
  const random = process.random.fork("agent");
  return {
    kernel: means.kernelFor(process),
    clock: { elapsed: process.elapsed, now: process.now, random: () => random.next(), wait: process.wait },
    files: {
      machineIdentity: () => machineIdentity,
      ensureMachineIdentity: async () => machineIdentity,
      hostName: async () => means.name,
      bootedAt: () => means.bootedAt,
      kernelRelease: () => KERNEL_RELEASE,
      hasIpvs: () => false,
      replaceFile: (path, text) => replaceText(process, means, { path, text }),
      openFolder: (path) => files.openFolder(process, path),
      runDirectory: identity.runDirectory,
      // No collector of flows runs here.
      flowHistory: `${identity.stateDirectory}/flows`,
      lockNat: () => files.locksFor(process).tryLock(natLockPath({})),
    },
    openDatastore: async () => means.openStore(process),
    openKubeClient: async () => means.openApi(process),
    serveFacts: ({ signal }) => aborted(signal),
    containerAddresses: () => undefined,
    uuid: uuidsOf(process),
    patiently: (work) => work(),
    tunnelProbes: undefined,
    openTcpProber: undefined,
    startCollector: undefined,
    followerOfBgp: () => ({
      ...{ isAnnouncing: true, announce: () => {}, run: (_, signal) => aborted(signal) },
      known: async () => ({ down: [], problems: [] }),
    }),
  };
}

/** Of no pod: there is no kubelet that asks for volumes. */
const SIDECARS: StartedFeature = {
  parts: [],
  follow: (enforcement) =>
    feedSidecars({ all: new Map(), recovered: new Set<string>(), follow: () => () => {} }, enforcement),
};

function replaceText(
  process: SimulatedProcess,
  { files }: MachineMeans,
  { path, text }: { readonly path: string; readonly text: string },
): boolean {
  if (files.read(path) === text) return false;
  process.effect(() => files.write(path, text));
  return true;
}
