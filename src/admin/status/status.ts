import { findInstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { ORCHESTRATOR_NAMES } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { formatYaml } from "../../yaml.ts";
import { withCluster } from "../cluster/access.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { clusterFindings } from "./cluster-findings.ts";
import { clusterStatusJson, clusterStatusText } from "./cluster-report.ts";
import { datastoreOfCluster } from "./datastore-of-cluster.ts";
import { isFailure, type StatusFinding } from "./finding.ts";
import { hostFindings } from "./host-findings.ts";
import { hostStatusJson, hostStatusText } from "./host-report.ts";
import { readStatusFacts } from "./read-facts.ts";
import { readHostStatus } from "./read-host.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const { findings, text, report } = (await isAboutHost(context, given))
    ? await hostStatus(context, given)
    : await clusterStatus(context, given);
  const format = given.values.get("output") ?? "text";
  if (format === "text") context.stdout(text);
  else context.stdout(format === "json" ? `${JSON.stringify(report, undefined, 2)}\n` : formatYaml(report));
  return findings.some(isFailure) ? EXIT_FAILED : EXIT_OK;
}

interface Status {
  readonly findings: readonly StatusFinding[];
  readonly text: string;
  /** For scripts. */
  readonly report: object;
}

async function clusterStatus(context: DatastoreAccess, given: Given): Promise<Status> {
  const facts = await withCluster(context, given, async (client) => {
    const objects = clusterObjects(client, context.signal);
    const datastore = await datastoreOfCluster(objects, context, given);
    return readStatusFacts(objects, { toolVersion: context.version, datastore });
  });
  const findings = clusterFindings(facts);
  return {
    findings,
    text: clusterStatusText(facts, findings, stdoutPage(context)),
    report: clusterStatusJson(facts, findings),
  };
}

async function hostStatus(context: DatastoreAccess & Host & Clock, given: Given): Promise<Status> {
  const facts = await readHostStatus(context, given);
  const findings = hostFindings(facts);
  return {
    findings,
    text: hostStatusText(facts, findings, stdoutPage(context)),
    report: hostStatusJson(facts, findings),
  };
}

/** Options name a cluster; otherwise the network of this host decides, before a kubeconfig that may serve other tools. */
async function isAboutHost(context: Call & Files, given: Given): Promise<boolean> {
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

async function hasUsualKubeconfig({ env, readFile }: Call & Files): Promise<boolean> {
  if (!env["HOME"]) return false;
  return await readFile(`${env["HOME"]}/.kube/config`).then(
    () => true,
    (failure) => !(failure instanceof Error && "code" in failure && failure.code === "ENOENT"),
  );
}
