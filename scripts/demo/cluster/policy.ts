/** A NetworkPolicy closes a pod to the pods of the other node, the API of flows says who was denied, and another rule opens it to one of them. */
import { formatYaml } from "../../../src/yaml.ts";
import { policyManifest, untilConnects } from "../../../test/support/across-nodes.ts";
import { addressesOf, POD_PORT } from "../../../test/support/kube-pods.ts";
import { NAMESPACE } from "../../../test/support/pods-in-namespace.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { StepResult } from "../output.ts";

const SERVER = "web";
const CLIENT = "shop";
const STRANGER = "cart";
/** The API server looks whether an aggregated API is there each half minute. */
const PATIENCE_MILLISECONDS = 45_000;

export async function closeByPolicy({ cluster, pods }: ClusterEnvironment): Promise<StepResult> {
  const to = addressesOf(await pods.get(SERVER));
  await untilConnects(pods, { from: CLIENT, to }, "open");
  await cluster.server.apply(policyManifest(SERVER, []));
  await untilConnects(pods, { from: CLIENT, to }, "closed");
  return { summary: `nobody may connect to "${SERVER}" any more: "${CLIENT}" cannot` };
}

/** Asked of the API server, which asks the controllers, and these the nodes. */
export async function showDenied({ admin }: ClusterEnvironment): Promise<StepResult> {
  const words = ["flows", "--verdict", "denied", "--from", `${NAMESPACE}/${CLIENT}`, "--to", `${NAMESPACE}/${SERVER}`];
  let details = "";
  await pollUntil(
    async () => {
      details = await admin(...words, "--last", "1");
      return details.includes("end of tier default, ingress");
    },
    "the denied connection to be in the answer of the cluster",
    PATIENCE_MILLISECONDS,
  );
  const id = await admin(...words, "--last", "1", "--output", "jsonpath={.id}");
  const reasons = await admin("flows", "explain", id.trim());
  return { summary: "who was denied on any node, and by which rule", details: `${details}\n${reasons}` };
}

export async function explainPolicy({ admin, pods }: ClusterEnvironment): Promise<StepResult> {
  const [from, to] = await Promise.all(
    [CLIENT, SERVER].map(async (name) => addressesOf(await pods.get(name))[0] ?? ""),
  );
  const words = ["--from", from ?? "", "--to", to ?? "", "--port", String(POD_PORT)];
  const details = await admin("policy", "explain", ...words);
  if (!/^Verdict: +denied$/m.test(details)) throw new Error(`The policy does not deny the connection:\n${details}`);
  return { summary: "why it cannot connect", details };
}

export async function openByPolicy({ cluster, pods }: ClusterEnvironment): Promise<StepResult> {
  const to = addressesOf(await pods.get(SERVER));
  const ingress = [{ from: [{ podSelector: { matchLabels: { app: CLIENT } } }] }];
  await cluster.server.apply(policyManifest(SERVER, ingress));
  await untilConnects(pods, { from: CLIENT, to }, "open");
  await untilConnects(pods, { from: STRANGER, to }, "closed");
  return {
    summary: `"${CLIENT}" of the other node connects again, "${STRANGER}" does not`,
    details: formatYaml({ ingress }),
  };
}
