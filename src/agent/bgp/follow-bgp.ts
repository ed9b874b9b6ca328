/** Connects the BGP of this node with BIRD, the files and the Secrets of this host. Loaded only if a network is installed. */

import type { Environment } from "../../cni/environment.ts";
import type { KubeAccess } from "../../config/kube-access.ts";
import { runDirectoryOf } from "../../config/run-directory.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { openKubeClient } from "../../kube/client.ts";
import { readSecret } from "../../kube/read-secret.ts";
import { readText } from "../../linux/files.ts";
import type { SocketOpener } from "../../linux/netlink-socket.ts";
import { birdFiles } from "../../routing/bird/bird-files.ts";
import { pathInContainer } from "../node-setup/container-root.ts";
import { BgpFollower } from "./bgp-follower.ts";
import { birdCommand } from "./bird-command.ts";
import { BirdKeeper } from "./bird-keeper.ts";
import { birdProgram } from "./bird-program.ts";
import { BIRD_SETTINGS } from "./bird-settings.ts";
import { Passwords } from "./passwords.ts";
import { PeerGuard } from "./peer-guard.ts";

export interface BgpMeans {
  readonly node: string;
  /** To the orchestrator's API, if the network config gives it. */
  readonly kube: KubeAccess | undefined;
  readonly kernel: SocketOpener;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
}

/** What the routes between nodes need of it. */
export type FollowedBgp = Pick<BgpFollower, "isAnnouncing" | "announce" | "run">;

export function followerOfBgp(environment: Environment, { node, kube, kernel, wait, log }: BgpMeans): FollowedBgp {
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
    wait,
  });
  const passwords = new Passwords({
    readFile: async (path) => readText(path),
    async readSecret(name, key) {
      if (kube === undefined) {
        throw new PluginError(
          "config-invalid",
          "the network config gives no access to the orchestrator's API: use a file instead of a Secret",
        );
      }
      const client = await openKubeClient(kube, {
        environment,
        warn: (message) => log(message, "WARNING"),
        now: () => new Date(),
        elapsed: () => performance.now(),
        program: identity.nodeAgent,
      });
      try {
        return await readSecret(client, { namespace: environment["POD_NAMESPACE"] ?? "kube-system", name, key });
      } finally {
        await client.close();
      }
    },
  });
  const guard = new PeerGuard({ kernel, wait, report: (message) => log(message, "WARNING") });
  return new BgpFollower({ node, keeper, passwords, guard, isBirdInstalled: () => program.isInstalled(), wait });
}

function birdOfHostOrContainer(environment: Environment): readonly string[] | undefined {
  const inContainer = (path: string) => pathInContainer(environment, path);
  return birdCommand({ path: environment["PATH"] ?? "", inContainer });
}
