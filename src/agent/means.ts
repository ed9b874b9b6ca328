/**
 * What the agent needs from the host that it runs on and from outside it. The real ones are here; a simulated node has
 * others (sim/node).
 */

import { existsSync } from "node:fs";
import type { Environment } from "../cni/environment.ts";
import { FLOW_HISTORY_DIRECTORY } from "../config/config-files.ts";
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { KubeAccess } from "../config/kube-access.ts";
import { natLockPath, runDirectoryOf } from "../config/run-directory.ts";
import type { Datastore } from "../datastore/datastore.ts";
import { openDatastoreToFollow } from "../datastore/open.ts";
import { SYSTEM_CLOCK } from "../datastore/replica/clock.ts";
import type { Watch } from "../health/watchdog.ts";
import { identity } from "../identity.ts";
import { bootedAt } from "../ipam/leaks/host-links.ts";
import type { KubeClient } from "../kube/api.ts";
import { openKubeClient } from "../kube/client.ts";
import { containerAddresses } from "../linux/container-addresses.ts";
import { type FileFolder, openFolder } from "../linux/file-folder.ts";
import { readText } from "../linux/files.ts";
import { type FileLock, tryLockFile, unlockFile } from "../linux/flock.ts";
import { hostName } from "../linux/host-name.ts";
import { ensureMachineIdentity } from "../linux/machine-identity.ts";
import { ownSockets, type SocketOpener } from "../linux/netlink-socket.ts";
import { ownMachine } from "../linux/own-machine.ts";
import { replaceFile } from "../linux/replace-file.ts";
import { openTcpProber, type TcpProber } from "../linux/tcp-probe.ts";
import { type BgpMeans, type FollowedBgp, followerOfBgp } from "./bgp/follow-bgp.ts";
import { readServedCalls } from "./calls/served-calls-file.ts";
import { type CollectorProcess, startCollector } from "./flows/collector-process.ts";
import { ownTunnelProbes, type TunnelProbes } from "./node-routes/probe-path.ts";
import { type ServeMeans, serveFacts } from "./policy/serve-facts.ts";

export interface AgentMeans {
  readonly kernel: SocketOpener;
  readonly clock: AgentClock;
  readonly files: AgentFiles;
  /** For a long time. */
  openDatastore(settings: DatastoreSettings, warn: (message: string) => void): Promise<Datastore>;
  openKubeClient(access: KubeAccess, warn: (message: string) => void): Promise<KubeClient>;
  /** Serves health and metrics. Resolves when the signal is aborted. */
  serveFacts(means: Omit<ServeMeans, "servedCalls" | "watch">): Promise<void>;
  /** In the network namespaces of all processes of the host, without lengths; `undefined` if those cannot be seen. */
  containerAddresses(): ReadonlySet<string> | undefined;
  uuid(): string;
  /** Runs what the kernel may be busy with for minutes: nobody ends the agent for it. */
  patiently<Result>(work: () => Result): Result;
  /** Runs BIRD. */
  followerOfBgp(means: BgpMeans): FollowedBgp;
  /** `undefined`: of a host without packets. */
  readonly tunnelProbes: TunnelProbes | undefined;
  /** `undefined`: of a host without packets. */
  readonly openTcpProber: ((mark: number) => TcpProber) | undefined;
  /** Starts a collector of flows. `undefined`: of a host without packets. */
  readonly startCollector: (() => CollectorProcess) | undefined;
}

export interface AgentClock {
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly now: () => Date;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

export interface AgentFiles {
  /** `undefined` if this machine has no ID yet. */
  readonly machineIdentity: () => string | undefined;
  /** An ID is generated if this machine has none. */
  readonly ensureMachineIdentity: () => Promise<string>;
  readonly hostName: () => Promise<string>;
  readonly bootedAt: () => Date;
  readonly kernelRelease: () => string;
  /** Whether the kernel has loaded IPVS. */
  readonly hasIpvs: () => boolean;
  /** Atomically. Returns whether its content was another. */
  readonly replaceFile: (path: string, text: string) => boolean;
  readonly openFolder: (path: string) => FileFolder;
  /** Holds the lock that tells ADDs that NAT follows the pools; `undefined` if it cannot be taken now. Returns its release. */
  readonly lockNat: () => (() => void) | undefined;
  /** What the programs of this host keep until it is switched off. */
  readonly runDirectory: string;
  /** Where the collector of flows keeps their history. */
  readonly flowHistory: string;
}

const KERNEL_RELEASE = "/proc/sys/kernel/osrelease";
/** The list of its Services, in every network namespace. */
const IPVS = "/proc/net/ip_vs";

const elapsed = () => performance.now();
const now = () => new Date();

interface OwnMeans {
  readonly environment: Environment;
  readonly watch: Pick<Watch, "ask" | "patiently">;
  /** The arguments that start a collector of flows. */
  readonly collector: readonly string[];
}

export function ownAgentMeans({ environment, watch, collector }: OwnMeans): AgentMeans {
  return {
    kernel: ownSockets,
    clock: { elapsed, now, random: Math.random, wait: SYSTEM_CLOCK.wait },
    files: {
      machineIdentity: ownMachine,
      ensureMachineIdentity: () => ensureMachineIdentity(identity, () => crypto.randomUUID()),
      hostName,
      bootedAt,
      kernelRelease: () => readText(KERNEL_RELEASE) ?? "",
      hasIpvs: () => existsSync(IPVS),
      replaceFile,
      openFolder,
      lockNat: () => {
        const lock = lockOrNothing(natLockPath(environment));
        return lock && (() => unlockFile(lock));
      },
      runDirectory: runDirectoryOf(environment),
      flowHistory: FLOW_HISTORY_DIRECTORY,
    },
    openDatastore: (settings, warn) => openDatastoreToFollow(settings, { environment, warn }),
    openKubeClient: (access, warn) =>
      openKubeClient(access, { environment, warn, now, elapsed, program: identity.nodeAgent }),
    patiently: watch.patiently,
    serveFacts: (means) => serveFacts({ ...means, watch, servedCalls: () => readServedCalls(environment) }),
    containerAddresses,
    uuid: () => crypto.randomUUID(),
    followerOfBgp: (means) => followerOfBgp(environment, means),
    tunnelProbes: ownTunnelProbes,
    openTcpProber,
    startCollector: () => startCollector(collector, { environment }),
  };
}

/** Without it, ADDs write NAT themselves, and the agent corrects it. */
function lockOrNothing(path: string): FileLock | undefined {
  try {
    return tryLockFile(path);
  } catch {
    return undefined;
  }
}
