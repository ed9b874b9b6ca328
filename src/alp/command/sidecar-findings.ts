/** What is wrong with the sidecars of workloads, and what to do about it. Pure. */

import type { StatusFinding } from "../../admin/status/finding.ts";
import { listed } from "../../counted.ts";
import { identity } from "../../identity.ts";
import type { SidecarWorkload } from "./sidecar-workloads.ts";

export function sidecarFindings(workloads: readonly SidecarWorkload[], version: string): readonly StatusFinding[] {
  return workloads.flatMap((each) => findingOf(each, version) ?? []);
}

function findingOf(each: SidecarWorkload, version: string): StatusFinding | undefined {
  const subject = `${each.namespace}/${each.workload}`;
  const pods = each.concerned.length === each.pods ? "" : ` in ${listed(each.concerned)}`;
  const restart = restartOf(each);
  switch (each.state) {
    case "ok":
      return undefined;
    case "outdated": {
      const releases = Object.keys(each.releases).filter((release) => release !== version);
      return {
        state: "warning",
        subject,
        message: `the sidecar${pods} is ${releases.join(", ")}, not ${version}`,
        remedy: restart,
      };
    }
    case "starting":
      return {
        state: "warning",
        subject,
        message: `${listed(each.concerned)} has not started yet`,
        remedy: `kubectl --namespace ${each.namespace} describe pod ${each.concerned[0]}`,
      };
    case "silent":
      return {
        state: "failed",
        subject,
        message: `the sidecar${pods} does not report to the node agent: rules with "http" match nothing there`,
        remedy: `kubectl --namespace ${each.namespace} logs ${each.concerned[0]} --container ${identity.sidecar}; the agents must not be older than the sidecar`,
      };
    case "closed":
      return {
        state: "failed",
        subject,
        message: `no sidecar${pods}, but "http" rules of ${each.policies.join(", ")} select it: they match nothing there`,
        remedy: `${identity.adminTool} alp template; then ${restart}`,
      };
    case "unfiltered":
      return {
        state: "failed",
        subject,
        message: `the mesh's proxy${pods} does not ask the sidecar: no EnvoyFilter tells it to. "http" rules of ${each.policies.join(", ")} allow every method and path until one is applied`,
        remedy:
          "kubectl apply -f deploy/alp/envoy-filter.yaml (meshes 1.6 and 1.7 have their own); it takes effect without a restart",
      };
    case "denied":
      return {
        state: "failed",
        subject,
        message: `no sidecar${pods}, but the mesh's proxy asks one: it denies every request`,
        remedy: `${identity.adminTool} alp template; then ${restart}`,
      };
  }
}

const RESTARTABLE = /^(deployment|statefulset|daemonset)\//;

function restartOf({ namespace, workload }: SidecarWorkload): string {
  if (RESTARTABLE.test(workload)) return `kubectl --namespace ${namespace} rollout restart ${workload}`;
  return `replace ${workload} in namespace ${namespace}: nothing restarts its pods`;
}
