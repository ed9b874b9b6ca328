/** What sidecars have to do with a verdict, and what they decide about a request, in words. Pure. */

import { type NormalPath, normalPath } from "../../http/normal-path.ts";
import { identity } from "../../identity.ts";
import { SIDECAR_ANNOTATION } from "../../model/sidecar-annotation.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { type ExplainedSide, ruleOfPolicy, unjudgedSide, workloadSide } from "./explain-side.ts";
import { sidecarOf } from "./http-criteria.ts";
import { judge } from "./judge.ts";
import type { Packet, PacketRequest } from "./packet.ts";
import type { PolicyResources } from "./resources.ts";

/** The connection of packets to a workload, with what its sidecar means for it. */
export function connectionSide(packet: Packet, endpoint: WorkloadEndpoint, resources: PolicyResources): ExplainedSide {
  const side = workloadSide(packet, endpoint, "ingress", resources);
  const hint = hintOf(side, packet, endpoint, resources);
  return hint === undefined ? side : { ...side, hint };
}

/** What the sidecar decides about a request over an allowed connection. */
export function requestSide(
  { packet, request }: { readonly packet: Packet; readonly request: PacketRequest },
  endpoint: WorkloadEndpoint,
  resources: PolicyResources,
): ExplainedSide {
  if (sidecarOf(endpoint) === undefined) {
    const reason = "no sidecar reports, so that requests over an allowed connection are not judged";
    return { ...unjudgedSide("ingress", reason), isRequest: true };
  }
  const side = workloadSide({ ...packet, request }, endpoint, "ingress", resources);
  const hint =
    side.verdict === "deny" && request.http !== undefined ? pathHint(normalPath(request.http.path)) : undefined;
  return { ...side, isRequest: true, ...(hint === undefined ? {} : { hint }) };
}

function pathHint(path: NormalPath): string | undefined {
  if (!path.ok) return `the path ${path.reason}, so that it matches no rule with paths`;
  if (path.doubtfulFrom === undefined) return undefined;
  const alike = path.path.slice(0, path.doubtfulFrom);
  return `not every server reads the path as ${path.path}, so that it matches only rules with a prefix of ${alike}`;
}

function hintOf(
  { verdict }: ExplainedSide,
  packet: Packet,
  endpoint: WorkloadEndpoint,
  resources: PolicyResources,
): string | undefined {
  const release = sidecarOf(endpoint);
  if (release !== undefined) {
    if (verdict === "deny") return undefined;
    return `the sidecar (${release}) decides about each request over the connection; give --method and --path to ask about one`;
  }
  if (verdict === "allow") return undefined;
  const { reason } = judge(packet, withSidecar(endpoint), "ingress", resources);
  if (reason.kind !== "rule" || reason.rule.http === undefined) return undefined;
  return `${ruleOfPolicy(reason, "ingress")} would match, but it is about HTTP requests, and no sidecar reports for this workload: add the sidecar to it, or see "${identity.adminTool} alp status -A"`;
}

function withSidecar(endpoint: WorkloadEndpoint): WorkloadEndpoint {
  const annotations = { ...endpoint.metadata.annotations, [SIDECAR_ANNOTATION]: "" };
  return { ...endpoint, metadata: { ...endpoint.metadata, annotations } };
}
