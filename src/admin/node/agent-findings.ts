/** What the check of a node says about the node agent, and about the network policy that it enforces. Pure. */

import { counted, listed } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { enforcedPoliciesOf } from "../../policy/judge/judge.ts";
import { restrictedEndpoints } from "../../policy/judge/policy-effects.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import type { AgentFacts, HostFacts } from "../host/facts.ts";
import { titleOf } from "../policy/explain/peer.ts";
import type { Finding } from "./finding.ts";

/** What the policies of the datastore are about on this host. */
export interface PolicyDemand {
  /** Workloads of this host that a policy selects: `default/web`. */
  readonly workloads: readonly string[];
  /** Those that no policy selects and that are closed: by their profiles, which count as soon as there is a policy. */
  readonly closedByProfiles: readonly string[];
  /** The profiles of those. */
  readonly profiles: readonly string[];
  /** The names of the host endpoints of this host. */
  readonly hostEndpoints: readonly string[];
}

export interface AgentCircumstances {
  /** Whether a network config on this host runs the plugin. */
  readonly hasNetwork: boolean;
  /** The installed network config has `policy.type`. */
  readonly isPolicyRequired: boolean;
  /** `unknown`: why it could not be read. */
  readonly demand: PolicyDemand | { readonly unknown: string; readonly remedy?: string };
  /** The node of Kubernetes that the agent is a pod of; absent: systemd starts it. */
  readonly podOfNode?: string;
}

export const NO_DEMAND: PolicyDemand = { workloads: [], closedByProfiles: [], profiles: [], hostEndpoints: [] };

export function policyDemand(resources: PolicyResources, node: string): PolicyDemand {
  const local = resources.endpoints.filter((endpoint) => endpoint.spec.node === node && !isFinished(endpoint));
  const { selected = [], others = [] } = Object.groupBy(local, (endpoint) =>
    enforcedPoliciesOf(endpoint, resources).length > 0 ? "selected" : "others",
  );
  const closed = restrictedEndpoints(others, resources);
  return {
    workloads: selected.map(titleOf),
    closedByProfiles: closed.map(titleOf),
    profiles: [...new Set(closed.flatMap(({ spec }) => spec.profiles ?? []))],
    hostEndpoints: resources.hostEndpoints
      .filter(({ spec }) => spec.node === node)
      .map(({ metadata }) => metadata.name),
  };
}

type Facts = Pick<HostFacts, "agent" | "hasPolicyTable" | "podLinks">;

export function agentFindings(facts: Facts, circumstances: AgentCircumstances): readonly Finding[] {
  return [agentFinding(facts, circumstances), policyFinding(facts, circumstances)];
}

function agentFinding({ agent, hasPolicyTable, podLinks }: Facts, circumstances: AgentCircumstances): Finding {
  const check = "node agent";
  if (agent === "running") return { check, state: "ok", message: "running" };
  // Only it writes the policy table.
  if (agent === "not used" && !hasPolicyTable) {
    return { check, state: "ok", message: "not used: it has not run since this host was started" };
  }
  if (!circumstances.hasNetwork && podLinks.length === 0 && !hasPolicyTable) {
    return { check, state: "ok", message: "not running, and not needed: this host has no network and no containers" };
  }
  const lost = "changed policies and pools have no effect here, and flushed tables are not restored";
  return {
    check,
    state: "failed",
    message: `not running, although it has run since this host was started: ${lost}`,
    remedy: startCommand(circumstances),
  };
}

function policyFinding({ agent, hasPolicyTable }: Facts, circumstances: AgentCircumstances): Finding {
  const { isPolicyRequired, demand } = circumstances;
  const check = "network policy";
  if (hasPolicyTable && agent === "running")
    return { check, state: "ok", message: "the rules of the node agent are in place" };
  if (hasPolicyTable) {
    const message = "the rules are those of before the node agent stopped: they do not follow changes";
    return { check, state: "warning", message, remedy: startCommand(circumstances) };
  }
  const remedy = agent === "running" ? logCommand(circumstances) : startCommand(circumstances);
  if (isPolicyRequired) {
    const message = "the network config has policy.type, but the node agent has not set its rules: pods are not added";
    return { check, state: "failed", message, remedy };
  }
  if ("unknown" in demand) {
    const message = `no table; whether a policy selects containers of this host is unknown: ${demand.unknown}`;
    return { check, state: "warning", message, remedy: demand.remedy ?? `${identity.adminTool} datastore check` };
  }
  const [wanted] = demandText(demand);
  if (wanted !== undefined) return { check, state: "failed", message: wanted, remedy };
  const message = "nothing to enforce: no policy selects a container of this host, and no profile closes one";
  return { check, state: "ok", message };
}

function demandText({ workloads, closedByProfiles, profiles, hostEndpoints }: PolicyDemand): readonly string[] {
  const [hostEndpoint] = hostEndpoints;
  return [
    ...(workloads.length === 0
      ? []
      : [
          `policies select ${counted(workloads.length, "container")} of this host (${listed(workloads)}), and nothing enforces them`,
        ]),
    ...(closedByProfiles.length === 0
      ? []
      : [
          `${profilesText(profiles)} ${counted(closedByProfiles.length, "container")} of this host (${listed(closedByProfiles)}), and nothing enforces that`,
        ]),
    ...(hostEndpoint === undefined
      ? []
      : [`host endpoint "${hostEndpoint}" is about this host, and nothing enforces its policies`]),
  ];
}

function profilesText(profiles: readonly string[]): string {
  if (profiles.length === 0) return "the lack of a profile closes";
  return profiles.length === 1 ? `profile ${profiles[0]} closes` : `profiles ${listed(profiles)} close`;
}

/** What commands that say what policies do must add; `undefined`: the agent carries it out. */
export function unenforcedText(
  { agent, hasPolicyTable }: AgentFacts,
  place: Pick<AgentCircumstances, "podOfNode">,
): string | undefined {
  // Another user than root may not see the files of an agent that runs.
  if (agent === "running" || (agent === "not used" && hasPolicyTable === undefined)) return undefined;
  const remedy = startCommand(place);
  if (hasPolicyTable === false) return `nothing enforces it here: ${identity.nodeAgent} does not run (${remedy})`;
  return hasPolicyTable === undefined
    ? `changes have no effect on this host: ${identity.nodeAgent} does not run (${remedy})`
    : `the rules in the kernel of this host are of before ${identity.nodeAgent} stopped; changes wait for it (${remedy})`;
}

/** Started alone, the unit of a fresh installation would not start at the next boot. */
function startCommand({ podOfNode }: Pick<AgentCircumstances, "podOfNode">): string {
  return podOfNode === undefined ? `systemctl enable --now ${identity.nodeAgent}` : podCommand(podOfNode);
}

/** It runs, and its log names the reason. */
function logCommand({ podOfNode }: AgentCircumstances): string {
  return podOfNode === undefined ? `journalctl --unit ${identity.nodeAgent}` : podCommand(podOfNode);
}

function podCommand(node: string): string {
  return `kubectl get pods --all-namespaces --field-selector spec.nodeName=${node}   # look for ${identity.nodeAgent}`;
}
