/** The console of the cluster, with pods that talk, until the demo is stopped. */
import { identity } from "../../../src/identity.ts";
import { CONSOLE } from "../../../src/release/workloads/names.ts";
import { policyManifest } from "../../../test/support/across-nodes.ts";
import { addressesOf, POD_PORT } from "../../../test/support/kube-pods.ts";
import { NAMESPACE } from "../../../test/support/pods-in-namespace.ts";
import { relayFromNetns } from "../../../test/support/tcp-relay.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { Output } from "../output.ts";

const PORTS = { page: 443 } as const;
const PODS = { "node-1": ["web", "report"], "node-2": ["db"] } as const;
const PAUSE = 500;
const NAMESPACE_OF_SYSTEM = `--namespace=${identity.systemNamespace}`;
const READER = "demo-reader";

export async function showClusterConsole(demo: ClusterEnvironment, output: Output): Promise<never> {
  const { server } = demo.cluster;
  await output.step("Pods that talk", () => startTalkers(demo));
  const { token } = await output.step("A reader", () => createReader(demo));
  const [node] = demo.nodes;
  if (node === undefined) throw new Error("The cluster has no node");
  await server.kubectl([
    ...["wait", `deployment/${CONSOLE}`, NAMESPACE_OF_SYSTEM, "--for=condition=Available", "--timeout=90s"],
  ]);
  const { spec } = await server.get<Service>("service", CONSOLE, NAMESPACE_OF_SYSTEM);
  const relay = await relayFromNetns(node.host.netns, { host: spec.clusterIP, port: PORTS.page });
  output.end(
    [
      "Open this address in a browser, which warns of a certificate of the cluster's own, and log in with the token:",
      ...["", `  https://localhost:${relay.port}/`, "", `  ${token}`, ""],
      `From another machine: ssh -L ${relay.port}:127.0.0.1:${relay.port} and the same address.`,
      'Flows shows that "report" is denied at "db": open it, draft a policy, apply it, and see it allowed. Ctrl-C ends the demo.',
    ].join("\n"),
  );
  return talk(demo);
}

interface Service {
  readonly spec: { readonly clusterIP: string };
}

async function startTalkers({ pods, cluster }: ClusterEnvironment) {
  const plans = Object.entries(PODS).flatMap(([nodeName, names]) =>
    names.map((name) => ({ name, labels: { app: name }, spec: { nodeName } })),
  );
  await pods.create(...plans);
  await pods.allReady(plans.length);
  await cluster.server.apply(policyManifest("db", [{ from: [{ podSelector: { matchLabels: { app: "web" } } }] }]));
  return { summary: '"web" to "db" on the other node; "report" may not ask "db"' };
}

/** An administrator: may see everything, and apply drafts. */
async function createReader({ cluster: { server } }: ClusterEnvironment) {
  const account = [READER, `--namespace=${NAMESPACE}`];
  await server.kubectl(["create", "serviceaccount", ...account]);
  const subject = `--serviceaccount=${NAMESPACE}:${READER}`;
  await server.kubectl(["create", "clusterrolebinding", READER, "--clusterrole=cluster-admin", subject]);
  const token = (await server.kubectl(["create", "token", ...account, "--duration=8h"])).trim();
  return { token, summary: `kubectl create token ${READER} --namespace ${NAMESPACE}` };
}

/** As long as the demo runs. */
async function talk({ pods }: ClusterEnvironment): Promise<never> {
  const [address = ""] = addressesOf(await pods.get("db"));
  for (;;) {
    for (const name of PODS["node-1"])
      await pods.exec(name, "/agnhost", "connect", `${address}:${POD_PORT}`, "--timeout=1s").catch(() => {});
    await Bun.sleep(PAUSE);
  }
}
