/** The node agents are replaced, one node at a time, while pods ping each other. */
import { identity } from "../../../src/identity.ts";
import { pingFrom } from "../../../test/support/across-nodes.ts";
import { addressesOf } from "../../../test/support/kube-pods.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { StepResult } from "../output.ts";

/** Longer than both agents need. */
const PINGS = 1500;

export async function restartAgents({ cluster, pods }: ClusterEnvironment): Promise<StepResult> {
  const [address = ""] = addressesOf(await pods.get("store"));
  const traffic = pingFrom(pods, "shop", address, PINGS);
  const agents = [`daemonset/${identity.nodeAgent}`, `--namespace=${identity.systemNamespace}`];
  await cluster.server.kubectl(["rollout", "restart", ...agents]);
  await cluster.server.kubectl(["rollout", "status", ...agents, "--timeout=60s"]);
  const { sent, received } = await traffic;
  if (sent !== received) throw new Error(`${sent - received} of ${sent} pings were lost`);
  return { summary: `as for an upgrade of ${identity.nodeAgent}: of ${sent} pings meanwhile none was lost` };
}
