/** Rules 7 and 8: all pods run, those of the controllers too. They start after the datastore is unlocked. It writes nothing. */
import { PluginError } from "../../../errors.ts";
import { objectPath } from "../../../release/object-kinds.ts";
import type { PlanningSite, Step, StepSite } from "../../engine/step.ts";
import { type DeploymentState, readDeploymentState } from "./controllers.ts";

const NAME = "all-pods";
const POLL_MILLISECONDS = 2_000;

export const allPodsStep: Step = {
  name: NAME,
  title: "Wait until all pods of the release run",
  rule: 7,
  why: "The node agents are awaited before. Without the controllers, leftover addresses and automatic host endpoints are not kept up to date.",

  async plan(site) {
    // With the operator, it reports them.
    if (site.facts.method.kind !== "manifest" || (await missingPods(site)).length === 0) return undefined;
    return { step: NAME, changes: [], obstacles: [], notes: [], estimatedSeconds: 30, data: {} };
  },

  remaining: (site) => missingPods(site),

  async act(site) {
    const told = new Set<string>();
    const reached = new Set<string>();
    let since = site.now().getTime();
    for (;;) {
      site.signal.throwIfAborted();
      const states = await deploymentStates(site);
      const text = states.flatMap(({ problems }) => problems).join("; ");
      if (text === "") return;
      if (!told.has(text)) site.progress(text);
      told.add(text);
      const before = reached.size;
      for (const each of states.flatMap((state) => state.reached)) reached.add(each);
      if (reached.size > before) since = site.now().getTime();
      else if (site.now().getTime() - since >= site.options.stallSeconds * 1_000) throw stalled(site, text);
      await site.wait(POLL_MILLISECONDS);
    }
  },
};

async function missingPods(site: PlanningSite): Promise<readonly string[]> {
  return (await deploymentStates(site)).flatMap(({ problems }) => problems);
}

function deploymentStates({ objects, facts, release }: PlanningSite): Promise<readonly DeploymentState[]> {
  const network = facts.method.kind === "manifest" ? facts.method.network : "own";
  const { components } = release.manifest({ datastore: facts.datastore, network });
  const deployments = components.filter(({ kind }) => kind === "Deployment");
  return Promise.all(deployments.map((each) => readDeploymentState(objects, objectPath(each), release.version)));
}

function stalled({ options, facts }: StepSite, text: string): PluginError {
  return new PluginError(
    "not-ready",
    `Not all pods of the release run, without progress for ${options.stallSeconds} s: ${text}`,
    {
      details: `look at them with "kubectl --namespace ${facts.namespace} describe pods", remove the cause, and run upgrade apply again. If a node does not come back, delete the Node, or its pod by force (kubectl delete pod --force)`,
    },
  );
}
