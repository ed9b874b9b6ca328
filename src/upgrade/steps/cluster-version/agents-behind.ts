/** Which nodes still run the agent of an earlier release. Pure. */
import type { Entry } from "../../../datastore/datastore.ts";
import { identity } from "../../../identity.ts";
import type { Fields } from "../../../kube/objects.ts";
import { AGENT_VERSION_ANNOTATION } from "../../../model/agent-version-annotation.ts";
import { parseKey } from "../../../model/keys.ts";
import { NODE } from "../../../model/kinds.ts";
import { orchestratorName } from "../../../model/node-orchestrator-name.ts";
import { compareReleases, isRelease } from "../../../model/release.ts";
import { isObject } from "../../../model/shape.ts";
import { imageVersion } from "../../detect/versions.ts";

/**
 * A node counts by what its agent has recorded. If it has recorded nothing, its pod counts; a node without such a pod has no
 * agent that could be behind.
 */
export function agentsBehind(nodes: readonly Entry[], pods: readonly Fields[], target: string): readonly string[] {
  const running = new Map(pods.flatMap(agentPod));
  return nodes.flatMap((entry): readonly string[] => {
    const { name, place, version } = nodeOf(entry);
    const pod = running.get(place);
    if (pod === undefined) return [];
    if (version !== undefined) return isBehind(version, target) ? [`Node ${name} has ${version}`] : [];
    return pod.isRunning && pod.version !== undefined && !isBehind(pod.version, target)
      ? []
      : [`Node ${name} has not recorded a release`];
  });
}

export function isBehind(version: string, target: string): boolean {
  return !isRelease(version) || compareReleases(version, target) < 0;
}

function nodeOf({ key, value }: Entry): { name: string; place: string; version?: string } {
  const parts = parseKey(key);
  const name = parts?.kind === "resource" ? parts.name : key;
  try {
    const node = NODE.codec.read(value, key);
    const version = node.metadata.annotations?.[AGENT_VERSION_ANNOTATION];
    const place = orchestratorName(node);
    return { name, place, ...(version !== undefined && isRelease(version) ? { version } : {}) };
  } catch {
    return { name, place: name };
  }
}

interface AgentPod {
  readonly isRunning: boolean;
  readonly version: string | undefined;
}

function agentPod(pod: Fields): readonly (readonly [node: string, AgentPod])[] {
  const [metadata, spec, status] = ["metadata", "spec", "status"].map((name) => {
    const value = pod[name];
    return isObject(value) ? value : {};
  });
  const containers: readonly unknown[] = Array.isArray(spec?.["containers"]) ? spec["containers"] : [];
  const agent = containers.filter(isObject).find(({ name }) => name === identity.nodeAgent);
  const node = spec?.["nodeName"];
  if (agent === undefined || typeof node !== "string" || metadata?.["deletionTimestamp"] !== undefined) return [];
  return [[node, { isRunning: status?.["phase"] === "Running", version: imageVersion(String(agent["image"])) }]];
}
