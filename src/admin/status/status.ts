import { findInstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { identity, ORCHESTRATOR_NAMES } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { formatYaml } from "../../yaml.ts";
import { withCluster } from "../cluster/access.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given } from "../main/command.ts";
import { stdoutPage } from "../terminal/page.ts";
import { datastoreOfCluster } from "./datastore-of-cluster.ts";
import { findingsOf, isFailure, type StatusFinding } from "./findings.ts";
import { hostFindings, hostStatusJson, hostStatusText } from "./host-report.ts";
import { readStatusFacts } from "./read-facts.ts";
import { readHostStatus } from "./read-host.ts";
import { statusJson, statusText } from "./report.ts";

export const statusCommand: Command = {
  kind: "command",
  name: "status",
  summary: "Show how the network is doing: in the cluster, or on this host",
  description: [
    "In a cluster, shows the components, the nodes with their agents, the pools with their usage, and the releases. Works for an",
    "Installation of the operator and for manifests.",
    "On a host whose network has no Kubernetes (podman), shows the node agent, the datastore, the pools, the containers and host",
    "endpoints of this host and the policies that select them. So it does if nothing names a cluster: no --kubeconfig, no KUBECONFIG, no ~/.kube/config.",
    "Then everything that is wrong follows, with what to do about it: on a host also what node check and ipam check find (as root).",
    "The exit code is 1 if something is wrong; warnings alone do not count. The datastore is the one of the installed network, unless",
    "options name another.",
  ].join("\n"),
  options: [
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "json", "yaml"],
      summary: "Output format: text (default), json or yaml",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "status", does: `Is ${identity.title} doing well in this cluster, or on this host?` },
    { command: "status --kubeconfig FILE", does: "The cluster, on a host whose own network is another" },
    { command: "status -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const { findings, text, report } = (await isAboutHost(context, given))
      ? await hostStatus(context, given)
      : await clusterStatus(context, given);
    const format = given.values.get("output") ?? "text";
    if (format === "text") context.stdout(text);
    else context.stdout(format === "json" ? `${JSON.stringify(report, undefined, 2)}\n` : formatYaml(report));
    return findings.some(isFailure) ? EXIT_FAILED : EXIT_OK;
  },
};

interface Status {
  readonly findings: readonly StatusFinding[];
  readonly text: string;
  /** For scripts. */
  readonly report: object;
}

async function clusterStatus(context: Context, given: Given): Promise<Status> {
  const facts = await withCluster(context, given, async (client) => {
    const objects = clusterObjects(client, context.signal);
    const datastore = await datastoreOfCluster(objects, context, given);
    return readStatusFacts(objects, context.version, datastore);
  });
  const findings = findingsOf(facts);
  return { findings, text: statusText(facts, findings, stdoutPage(context)), report: statusJson(facts, findings) };
}

async function hostStatus(context: Context, given: Given): Promise<Status> {
  const facts = await readHostStatus(context, given);
  const findings = hostFindings(facts);
  return {
    findings,
    text: hostStatusText(facts, findings, stdoutPage(context)),
    report: hostStatusJson(facts, findings),
  };
}

/** Options name a cluster; otherwise the network of this host decides, before a kubeconfig that may serve other tools. */
async function isAboutHost(context: Context, given: Given): Promise<boolean> {
  const { values } = given;
  const isCluster = values.has("kubeconfig") || values.has("context");
  if (isCluster || ORCHESTRATOR_NAMES.some((name) => name === values.get("datastore-type"))) return false;
  // The report about the host names a file that cannot be used; nothing says then that there is a cluster.
  const installed = await findInstalledNetwork(context).catch(() => "unusable" as const);
  if (installed === "unusable") return true;
  if (installed !== undefined) return kubeAccess(installed.decoded.config) === undefined;
  if (context.env["KUBECONFIG"] || context.env["KUBERNETES_SERVICE_HOST"]) return false;
  return !(await hasUsualKubeconfig(context));
}

async function hasUsualKubeconfig({ env, readFile }: Context): Promise<boolean> {
  if (!env["HOME"]) return false;
  return await readFile(`${env["HOME"]}/.kube/config`).then(
    () => true,
    (failure) => !(failure instanceof Error && "code" in failure && failure.code === "ENOENT"),
  );
}
