/**
 * The releases of the node agents, as their Nodes record them, and the version of the cluster that follows: the earliest of
 * them. A node without a recorded release runs no agent, or one too old to record it: it counts as earlier than all. Pure.
 */
import type { Entry } from "../datastore/datastore.ts";
import { AGENT_VERSION_ANNOTATION } from "../model/agent-version-annotation.ts";
import { parseKey } from "../model/keys.ts";
import { NODE } from "../model/kinds.ts";
import { compareReleases, isRelease } from "../model/release.ts";

export interface NodeVersion {
  readonly node: string;
  readonly version?: string;
}

/** An unreadable Node counts as one without a release. */
export function nodeVersion({ key, value }: Entry): NodeVersion {
  const parts = parseKey(key);
  const node = parts?.kind === "resource" ? parts.name : key;
  const version = annotatedVersion(value, key);
  return version !== undefined && isRelease(version) ? { node, version } : { node };
}

/** `undefined` if a node has none. */
export function earliestVersion(nodes: readonly NodeVersion[]): string | undefined {
  let earliest: string | undefined;
  for (const { version } of nodes) {
    if (version === undefined) return undefined;
    if (earliest === undefined || compareReleases(version, earliest) < 0) earliest = version;
  }
  return earliest;
}

/** The nodes that run an earlier release than another, or none. */
export function nodesBehind(nodes: readonly NodeVersion[]): readonly NodeVersion[] {
  const latest = nodes.reduce<string | undefined>((best, { version }) => later(best, version), undefined);
  if (latest === undefined) return [];
  return nodes.filter(({ version }) => version === undefined || compareReleases(version, latest) < 0);
}

function later(left: string | undefined, right: string | undefined): string | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return compareReleases(left, right) < 0 ? right : left;
}

function annotatedVersion(value: string, key: string): string | undefined {
  try {
    return NODE.codec.read(value, key).metadata.annotations?.[AGENT_VERSION_ANNOTATION];
  } catch {
    return undefined;
  }
}
