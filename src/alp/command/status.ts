import { withCluster } from "../../admin/cluster/access.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError } from "../../admin/main/command.ts";
import type { DatastoreAccess } from "../../admin/main/context.ts";
import { ALL_NAMESPACES_OPTION, USUAL_NAMESPACE } from "../../admin/resources/options.ts";
import { namespaceOf } from "../../admin/resources/reference.ts";
import { findingLines } from "../../admin/status/cluster-report.ts";
import { settingsOf } from "../../admin/status/datastore-of-cluster.ts";
import { isFailure, type StatusFinding } from "../../admin/status/finding.ts";
import { type Page, stdoutPage, WITHOUT_LIMIT } from "../../admin/terminal/page.ts";
import { paint } from "../../admin/terminal/paint.ts";
import { formatTable } from "../../admin/terminal/table.ts";
import { describeFailure } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { formatYaml } from "../../yaml.ts";
import { readMeshPods, readOwners } from "../mesh/read-mesh-pods.ts";
import { type HttpPolicies, readFiltered, readHttpPolicies } from "./read-sidecars.ts";
import { sidecarFindings } from "./sidecar-findings.ts";
import { type SidecarWorkload, sidecarWorkloads } from "./sidecar-workloads.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const namespace = wantedNamespace(given);
  const { workloads, findings } = await withCluster(context, given, (client) =>
    read(clusterObjects(client, context.signal), { context, given, namespace }),
  );
  const format = given.values.get("output") ?? "text";
  const report = { version: context.version, ok: !findings.some(isFailure), workloads, findings };
  if (format === "json") context.stdout(`${JSON.stringify(report, undefined, 2)}\n`);
  else if (format === "yaml") context.stdout(formatYaml(report));
  else {
    context.stdout(tableOf(workloads, { isWide: format === "wide", namespace, page: stdoutPage(context) }));
    if (workloads.length + findings.length > 0) context.stdout(findingLines(findings, paint(context)).join(""));
  }
  return report.ok ? EXIT_OK : EXIT_FAILED;
}

function wantedNamespace(given: Given): string | undefined {
  const named = namespaceOf(given);
  if (!given.switches.has(ALL_NAMESPACES_OPTION.name)) return named ?? USUAL_NAMESPACE;
  if (named === undefined) return undefined;
  throw new UsageError("--all-namespaces and --namespace cannot be combined");
}

interface Asked {
  readonly context: DatastoreAccess;
  readonly given: Given;
  readonly namespace: string | undefined;
}

interface Report {
  readonly workloads: readonly SidecarWorkload[];
  readonly findings: readonly StatusFinding[];
}

async function read(objects: ClusterObjects, asked: Asked): Promise<Report> {
  const { context, namespace } = asked;
  const policy = await policiesOrProblem(objects, asked);
  const http: HttpPolicies = "problem" in policy ? { policies: new Map(), reported: new Map() } : policy;
  const pods = await readMeshPods(objects, namespace, (pod) => http.reported.get(pod));
  const workloads = sidecarWorkloads({
    pods,
    owners: await readOwners(objects, namespace, pods),
    httpPolicies: http.policies,
    isFiltered: await readFiltered(objects),
    version: context.version,
  });
  const problems = "problem" in policy ? [policy.problem] : [];
  return { workloads, findings: [...problems, ...sidecarFindings(workloads, context.version)] };
}

/** Sidecars are shown without the datastore too. */
async function policiesOrProblem(
  objects: ClusterObjects,
  { context, given }: Asked,
): Promise<HttpPolicies | { readonly problem: StatusFinding }> {
  try {
    const store = await context.openDatastore(await settingsOf(objects, context, given));
    try {
      return await readHttpPolicies(store);
    } finally {
      await store.close();
    }
  } catch (failure) {
    context.signal.throwIfAborted();
    const message = `the policies are unknown: ${describeFailure(failure)}`;
    return { problem: { state: "failed", subject: "datastore", message } };
  }
}

interface TableForm {
  readonly isWide: boolean;
  readonly namespace: string | undefined;
  readonly page: Page;
}

function tableOf(workloads: readonly SidecarWorkload[], { isWide, namespace, page }: TableForm): string {
  if (workloads.length === 0) {
    const [place, hint] =
      namespace === undefined ? ["the cluster", ""] : [`namespace ${namespace}`, "; -A shows all namespaces"];
    return `No workload of ${place} has the sidecar of ${identity.title}, or needs it${hint}.\n`;
  }
  const header = [
    ...(namespace === undefined ? ["NAMESPACE"] : []),
    ...["WORKLOAD", "SIDECAR", "PODS", "REPORTING", "STATE"],
    ...(isWide ? ["POLICIES", "IMAGES"] : []),
  ];
  const rows = workloads.map((each) => [
    ...(namespace === undefined ? [each.namespace] : []),
    ...[
      each.workload,
      releasesText(each),
      String(each.pods),
      `${each.reporting}/${each.pods}`,
      STATE_WORDS[each.state],
    ],
    ...(isWide ? [each.policies.join(", ") || "none", each.images.join(", ") || "none"] : []),
  ]);
  return formatTable(header, rows, isWide ? { ...page, width: WITHOUT_LIMIT } : page);
}

const STATE_WORDS = {
  ok: "ok",
  outdated: "outdated",
  starting: "starting",
  silent: "not reporting",
  closed: "no sidecar",
  denied: "no sidecar",
  unfiltered: "no filter",
} as const;

function releasesText({ releases, pods, withSidecar }: SidecarWorkload): string {
  const entries = Object.entries(releases);
  const [only] = entries;
  if (only !== undefined && only[1] === pods) return only[0];
  const without = pods - withSidecar;
  const parts = [...entries, ...(without > 0 && entries.length > 0 ? [["none", without] as const] : [])];
  return parts.length === 0 ? "none" : parts.map(([release, count]) => `${release} (${count})`).join(", ");
}
