/** The node agents stop and start again while pods ping each other. */
import { identity } from "../../../src/identity.ts";
import { pingFrom } from "../../../test/support/across-nodes.ts";
import { addressesOf } from "../../../test/support/kube-pods.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import type { StepResult } from "../output.ts";
import type { ClusterEnvironment, TwoNodes } from "./environment.ts";

const PINGS = 400;

export async function restartAgents({ pods }: ClusterEnvironment, nodes: TwoNodes): Promise<StepResult> {
  const [address = ""] = addressesOf(await pods.get("store"));
  const traffic = pingFrom(pods, "shop", address, PINGS);
  for (const { agent } of nodes) {
    await agent.stop();
    agent.start();
    await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the node agent to serve");
  }
  const { sent, received } = await traffic;
  if (sent !== received) throw new Error(`${sent - received} of ${sent} pings were lost`);
  return { summary: `as for an upgrade of ${identity.nodeAgent}: of ${sent} pings meanwhile none was lost` };
}
