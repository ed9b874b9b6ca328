/** The part of the node agent that finds the pods with a sidecar of a release before v3.29; they are fed with all others. */

import { DEFAULT_POLICY_SYNC_DIRECTORY, POLICY_SYNC_DIRECTORY } from "../../config/policy-sync-directory.ts";
import { quoted } from "../../quote.ts";
import type { AgentAccess, SupervisedPart, Wait } from "../agent-access.ts";
import type { SidecarVolume, SidecarVolumes } from "../feed/sidecar-volumes.ts";
import { SyncVolumes } from "./sync-volumes.ts";

interface SyncPart {
  /** The given ones, and those of earlier releases. */
  readonly volumes: SidecarVolumes;
  /** None if the directory is not a valid one. */
  readonly parts: readonly SupervisedPart[];
}

const LOOK_MILLISECONDS = 250;
/** On a node that has never had one. */
const SELDOM_MILLISECONDS = 5_000;

export function syncPart({ environment, say }: AgentAccess, own: SidecarVolumes, wait: Wait): SyncPart {
  const root = environment[POLICY_SYNC_DIRECTORY] || DEFAULT_POLICY_SYNC_DIRECTORY;
  if (!root.startsWith("/")) {
    const remedy = `use an absolute path, such as ${DEFAULT_POLICY_SYNC_DIRECTORY}`;
    say(
      `No sidecars of earlier releases are served: ${POLICY_SYNC_DIRECTORY} is ${quoted(root)}; ${remedy}`,
      {},
      "ERROR",
    );
    return { volumes: own, parts: [] };
  }
  const earlier = new SyncVolumes(root, (problem) => say(problem, {}, "WARNING"));
  const run = async (signal: AbortSignal) => {
    while (!signal.aborted) await wait(earlier.refresh() ? LOOK_MILLISECONDS : SELDOM_MILLISECONDS, signal);
  };
  return { volumes: new BothVolumes(own, earlier), parts: [{ name: "sidecars of earlier releases", run }] };
}

class BothVolumes implements SidecarVolumes {
  constructor(
    private readonly own: SidecarVolumes,
    private readonly earlier: SidecarVolumes,
  ) {}

  get recovered(): ReadonlySet<string> {
    return this.own.recovered.union(this.earlier.recovered);
  }

  /** A pod that has both is served at its own. */
  get all(): ReadonlyMap<string, SidecarVolume> {
    if (this.earlier.all.size === 0) return this.own.all;
    return new Map([...this.earlier.all, ...this.own.all]);
  }

  follow(listener: () => void): () => void {
    const [one, other] = [this.own.follow(listener), this.earlier.follow(listener)];
    return () => {
      one();
      other();
    };
  }
}
