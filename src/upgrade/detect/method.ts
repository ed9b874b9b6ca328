/** How the product was installed: by its chart, its operator, or a manifest. Pure. */
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import type { ChartRelease, InstallMethod } from "../engine/facts.ts";
import type { ReleaseRecord } from "../helm-releases.ts";
import { agentsOf } from "./agents.ts";
import { type DetectionRequest, type Found, found, unclear } from "./detection.ts";
import { manifestNetwork } from "./manifest-network.ts";
import type { ClusterSnapshot } from "./snapshot.ts";
import { describeWorkload, type Workload } from "./workload.ts";

export function installMethod(snapshot: ClusterSnapshot, request: DetectionRequest): Found<InstallMethod> {
  const kind = methodKind(snapshot, request);
  if (!kind.ok) return kind;
  switch (kind.value) {
    case "chart": {
      const release = chartRelease(snapshot.releases, request);
      return release.ok ? found({ kind: "chart", release: release.value }) : release;
    }
    case "operator":
      return found({ kind: "operator" });
    case "manifest": {
      const network = manifestNetwork(snapshot, request);
      return network.ok ? found({ kind: "manifest", network: network.value }) : network;
    }
  }
}

function methodKind(snapshot: ClusterSnapshot, request: DetectionRequest): Found<InstallMethod["kind"]> {
  if (request.method !== undefined) return found(request.method);
  const agents = agentsOf(snapshot);
  const operated = agents.filter(({ namespace }) => namespace === identity.systemNamespace);
  const applied = agents.filter(({ namespace }) => namespace !== identity.systemNamespace);
  const operator = operatorEvidence(snapshot);
  if (agents.length === 0 && operator.length === 0) {
    return unclear(
      `${identity.title} is not installed in this cluster: no DaemonSet runs its node agents`,
      `install it with "${identity.adminTool} install", or select another cluster with --kubeconfig and --context`,
    );
  }
  if (operator.length === 0) {
    return operated.length === 0
      ? found("manifest")
      : unclear(
          `${described(operated)} is one of the operator, but there is no operator and no Installation`,
          "add --method manifest, --method operator or --method chart",
        );
  }
  if (applied.length > 0) {
    return unclear(
      `both a manifest and the operator have installed it: ${[...applied.map(describeWorkload), ...operator].join(", ")}`,
      "remove one of them, or add --method manifest, --method operator or --method chart",
    );
  }
  return found(snapshot.releases.length > 0 ? "chart" : "operator");
}

function operatorEvidence({ workloads, installation, releases }: ClusterSnapshot): readonly string[] {
  const deployment = workloads.find(({ kind, name }) => kind === "Deployment" && name === identity.operator);
  return [
    ...(deployment === undefined ? [] : [describeWorkload(deployment)]),
    ...(installation === undefined ? [] : ["Installation default"]),
    ...releases.map(({ namespace, name }) => `release ${namespace}/${name} of Helm`),
  ];
}

/** Records that a move to the operator's namespace has left in another one do not count. */
function chartRelease(records: readonly ReleaseRecord[], { release: named }: DetectionRequest): Found<ChartRelease> {
  const isWanted = ({ namespace, name }: ReleaseRecord) => named === undefined || named === `${namespace}/${name}`;
  const wanted = records.filter(isWanted);
  const moved = wanted.filter(({ namespace }) => namespace === identity.operator);
  const [only, another] = wanted.length > 1 && moved.length > 0 ? moved : wanted;
  if (only !== undefined && another === undefined) return found(releaseOf(only));
  const places = records.map(({ namespace, name }) => quoted(`${namespace}/${name}`)).join(", ");
  if (only !== undefined) {
    return unclear(
      `there are several releases of chart ${identity.operator}: ${places}`,
      "add --release NAMESPACE/NAME",
    );
  }
  return named === undefined
    ? unclear(`Helm has no record of chart ${identity.operator}`, "add --method operator, or --method manifest")
    : unclear(`there is no release ${quoted(named)} of chart ${identity.operator}`, releasesThatExist(places));
}

function releasesThatExist(places: string): string {
  return places === "" ? "add --method operator, or --method manifest" : `use --release with one of ${places}`;
}

function releaseOf({ name, namespace, revision, chartVersion, status }: ReleaseRecord): ChartRelease {
  return { name, namespace, revision, chartVersion, status };
}

function described(workloads: readonly Workload[]): string {
  return workloads.map(describeWorkload).join(", ");
}
