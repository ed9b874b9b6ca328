/** Connects the BGP of this node with BIRD, the files and the Secrets of this host. Loaded only if a network is installed. */

import type { Environment } from "../../cni/environment.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import { runDirectoryOf } from "../../config/run-directory.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { SERVICE_RECORDS } from "../../datastore/kube/service-records.ts";
import { openKubeStore } from "../../datastore/kube/store.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { openKubeClient } from "../../kube/client.ts";
import { readSecret } from "../../kube/read-secret.ts";
import { readText } from "../../linux/files.ts";
import type { SocketOpener } from "../../linux/netlink-socket.ts";
import { onceEach } from "../../log/once-each.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import { announcedBy } from "../../routing/bird/render.ts";
import { pathInContainer } from "../node-setup/container-root.ts";
import { BgpFollower } from "./bgp-follower.ts";
import { birdCommand } from "./bird-command.ts";
import { BirdKeeper } from "./bird-keeper.ts";
import { birdProgram } from "./bird-program.ts";
import { BIRD_SETTINGS } from "./bird-settings.ts";
import { Passwords } from "./passwords.ts";
import { PeerGuard } from "./peer-guard.ts";
import { ServiceFollower } from "./service-follower.ts";

export interface BgpMeans {
  readonly node: string;
  /** To the orchestrator's API, if the network config gives it. */
  readonly kube: KubeAccess | undefined;
  /** As the orchestrator calls this node. */
  readonly orchestratorNode: string;
  /** How many other agents there are, as far as it is known. */
  readonly peers: () => number;
  readonly random: () => number;
  readonly kernel: SocketOpener;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
}

/** What the routes between nodes need of it. */
export type FollowedBgp = Pick<BgpFollower, "isAnnouncing" | "announce" | "known" | "run">;

export function followerOfBgp(environment: Environment, means: BgpMeans): FollowedBgp {
  const { node, kube, kernel, wait, log } = means;
  const { logFile } = BIRD_SETTINGS;
  const program = birdProgram(birdFiles(runDirectoryOf(environment)), {
    logFile,
    command: () => birdOfHostOrContainer(environment),
  });
  const keeper = new BirdKeeper({
    program,
    settings: BIRD_SETTINGS,
    report: log,
    elapsed: () => performance.now(),
    now: () => new Date(),
    wait,
  });
  const warn = (message: string) => log(message, "WARNING");
  const openClient = (access: KubeAccess) =>
    openKubeClient(access, {
      ...{ environment, warn, elapsed: () => performance.now(), program: identity.nodeAgent },
      now: () => new Date(),
    });
  const passwords = new Passwords({
    readFile: async (path) => readText(path),
    async readSecret(name, key) {
      if (kube === undefined) {
        throw new PluginError(
          "config-invalid",
          "the network config gives no access to the Kubernetes API: use a file instead of a Secret",
        );
      }
      const client = await openClient(kube);
      try {
        return await readSecret(client, { namespace: environment["POD_NAMESPACE"] ?? "kube-system", name, key });
      } finally {
        await client.close();
      }
    },
  });
  const guard = new PeerGuard({ kernel, wait, report: warn });
  const services = new ServiceFollower({
    node: means.orchestratorNode,
    open: kube && (async () => servicesOf(await openClient(kube))),
    ...serviceReplica(means),
  });
  const isBirdInstalled = () => program.isInstalled();
  const announcedBefore = () => announcedBy(program.configuration() ?? "");
  return new BgpFollower({ node, keeper, passwords, guard, services, announcedBefore, isBirdInstalled, wait });
}

function servicesOf(client: KubeClient): Datastore {
  return openKubeStore({ api: client, mappings: SERVICE_RECORDS, close: () => client.close() });
}

function serviceReplica({ peers, random, wait, log }: BgpMeans) {
  const problems = onceEach((message) => log(message, "WARNING"));
  const clock = { now: () => performance.now(), wait };
  const report = ({ message }: { readonly message: string }) => problems.report(message);
  return { wait, report: problems.report, replica: { peers, random, clock, report } };
}

function birdOfHostOrContainer(environment: Environment): readonly string[] | undefined {
  const inContainer = (path: string) => pathInContainer(environment, path);
  return birdCommand({ path: environment["PATH"] ?? "", inContainer });
}
