/** What it takes to replace host endpoints of users by automatic ones, and what that changes. Pure. */

import { identity } from "../../../identity.ts";
import { automaticName, CREATED_BY_LABEL, isAutomatic } from "../../../model/automatic-host-endpoint.ts";
import { ALL_INTERFACES, type HostEndpoint, hostEndpoint } from "../../../model/host-endpoint.ts";
import type { Node } from "../../../model/node.ts";
import type { NodeAgentConfiguration } from "../../../model/node-agent-configuration.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../../model/profile.ts";
import { UPGRADE_POLICY } from "../../../model/upgrade-policy.ts";
import type { PolicyResources } from "../../../policy/judge/resources.ts";
import { quoted } from "../../../quote.ts";
import type { Obstacle } from "../../engine/facts.ts";
import type { UpgradeOptions } from "../../engine/options.ts";
import { listed } from "../../engine/wording.ts";
import type { ChangedNode } from "./affected-selectors.ts";
import { isMigrated, type LabelTarget, type NodeLabels, planLabels } from "./copied-labels.ts";
import { type PolicyEffect, policyEffects, portNamesInRules, type Replacement } from "./policy-effects.ts";

export interface Hosts {
  readonly nodes: readonly Node[];
  readonly resources: PolicyResources;
  readonly configurations: readonly NodeAgentConfiguration[];
  readonly targetOf: (node: Node) => LabelTarget;
}

export interface Migration {
  readonly migrated: readonly HostEndpoint[];
  readonly labels: readonly NodeLabels[];
  /** Of all nodes. */
  readonly replacements: readonly Replacement[];
  readonly changedNodes: readonly ChangedNode[];
  readonly obstacles: readonly Obstacle[];
  readonly notes: readonly string[];
}

export function planMigration(
  { nodes, resources, configurations, targetOf }: Hosts,
  options: Pick<UpgradeOptions, "overwriteLabels" | "acceptDefaultAllow">,
): Migration {
  const migrated = resources.hostEndpoints.filter(isMigrated);
  const { nodes: labels, obstacles } = planLabels(migrated, nodes, { ...options, targetOf });
  const changedNodes = nodes.map((node) => changedNode(node, labels));
  const replacements = changedNodes.map(({ name, after }): Replacement => {
    const own = resources.hostEndpoints.filter(
      ({ spec }) => spec.node === name && spec.interfaceName === ALL_INTERFACES,
    );
    const users = own.filter(isMigrated);
    return { node: name, before: users.length > 0 ? users : own.filter(isAutomatic), after: automaticOf(name, after) };
  });
  const effects = policyEffects(replacements, withoutUpgradePolicy(resources));
  const judged = [
    judgeEffects(effects, replacements, options.acceptDefaultAllow),
    judgeFailsafePorts(effects, configurations),
    judgeProfiles(migrated, options.acceptDefaultAllow),
    judgePorts(migrated, portNamesInRules(resources)),
  ];
  return {
    ...{ migrated, labels, replacements, changedNodes },
    obstacles: [...obstacles, ...judged.flatMap((each) => each.obstacles)],
    notes: judged.flatMap((each) => each.notes),
  };
}

/** The step before this one deletes it. */
export function withoutUpgradePolicy(resources: PolicyResources): PolicyResources {
  const isTemporary = (name: string) => name === UPGRADE_POLICY || name === `default.${UPGRADE_POLICY}`;
  return {
    ...resources,
    globalNetworkPolicies: resources.globalNetworkPolicies.filter(({ metadata }) => !isTemporary(metadata.name)),
  };
}

function changedNode({ metadata }: Node, labels: readonly NodeLabels[]): ChangedNode {
  const { name, labels: before = {} } = metadata;
  return { name, before, after: { ...before, ...labels.find(({ node }) => node === name)?.wanted } };
}

function automaticOf(node: string, labels: ChangedNode["after"]): HostEndpoint {
  return hostEndpoint.make(
    { name: automaticName(node), labels: { ...labels, [CREATED_BY_LABEL]: identity.controllers } },
    { node, interfaceName: ALL_INTERFACES, profiles: [DEFAULT_ALLOW_PROFILE] },
  );
}

interface Judged {
  readonly obstacles: readonly Obstacle[];
  readonly notes: readonly string[];
}

function judgeEffects(
  effects: readonly PolicyEffect[],
  replacements: readonly Replacement[],
  acceptDefaultAllow: boolean,
): Judged {
  const isNew = new Set(replacements.filter(({ before }) => before.length === 0).map(({ node }) => node));
  const lost = effects.flatMap(({ node, direction, lost: titles }) =>
    titles.map((title) => ({
      message: `${title} (${direction}) selects host ${quoted(node)} by its host endpoint, and would not select the automatic one`,
      remedy: "let it select labels that the node has too",
    })),
  );
  const opened = effects
    .filter(({ isOpened }) => isOpened)
    .map(({ node, direction }) => ({
      message: `Host ${quoted(node)} would become open: no policy decides about all its ${direction} traffic, and an automatic host endpoint allows the rest`,
      remedy: `write a policy for ${direction} of the host first, or accept it with --accept-default-allow`,
    }));
  const hostOf = (node: string) => (isNew.has(node) ? `${node} (without a host endpoint so far)` : node);
  return {
    obstacles: [...lost, ...(acceptDefaultAllow ? [] : opened)],
    notes: [
      ...byPolicy(effects, "kept").map(([policy, nodes]) => `${policy} selects ${listed(nodes)} before and after`),
      ...byPolicy(effects, "gained").map(
        ([policy, nodes]) => `${policy} begins to apply to ${listed(nodes.map(hostOf))}`,
      ),
      ...(acceptDefaultAllow ? opened.map(({ message }) => message) : []),
    ],
  };
}

/** Its hosts, of each policy and direction. */
function byPolicy(
  effects: readonly PolicyEffect[],
  which: "kept" | "gained",
): readonly (readonly [policy: string, nodes: readonly string[]])[] {
  const pairs = effects.flatMap(({ node, direction, ...effect }) =>
    effect[which].map((title) => ({ policy: `${title} (${direction})`, node })),
  );
  return [...Map.groupBy(pairs, ({ policy }) => policy)].map(([policy, hosts]) => [
    policy,
    hosts.map(({ node }) => node),
  ]);
}

const FAILSAFE = { ingress: "failsafeInboundHostPorts", egress: "failsafeOutboundHostPorts" } as const;

/** Policies that begin to apply to a host can cut it off, unless the ports of its administration stay open. */
function judgeFailsafePorts(
  effects: readonly PolicyEffect[],
  configurations: readonly NodeAgentConfiguration[],
): Judged {
  const directions = new Set(effects.filter(({ gained }) => gained.length > 0).map(({ direction }) => direction));
  const obstacles = [...directions].flatMap((direction) => {
    const field = FAILSAFE[direction];
    const emptied = configurations.filter(({ spec }) => spec[field]?.length === 0);
    return emptied.map(({ metadata }) => ({
      message: `Policies begin to apply to hosts (${direction}), and NodeAgentConfiguration ${quoted(metadata.name)} has no failsafe ports: hosts can become unreachable`,
      remedy: `set spec.${field}, or remove it so that its default applies`,
    }));
  });
  return { obstacles, notes: [] };
}

function judgeProfiles(migrated: readonly HostEndpoint[], acceptDefaultAllow: boolean): Judged {
  const lines = migrated.flatMap(({ metadata, spec }) => {
    const profiles = (spec.profiles ?? []).filter((name) => name !== DEFAULT_ALLOW_PROFILE);
    if (profiles.length === 0) return [];
    return [
      `Host endpoint ${quoted(metadata.name)} has the profiles ${profiles.join(", ")}; the automatic one has only ${DEFAULT_ALLOW_PROFILE}`,
    ];
  });
  if (acceptDefaultAllow) return { obstacles: [], notes: lines };
  const remedy = "write policies with their rules, or accept the loss with --accept-default-allow";
  return { obstacles: lines.map((message) => ({ message, remedy })), notes: [] };
}

function judgePorts(migrated: readonly HostEndpoint[], used: ReadonlySet<string>): Judged {
  const named = migrated.flatMap(({ metadata, spec }) =>
    (spec.ports ?? []).map(({ name }) => ({ name, endpoint: metadata.name })),
  );
  const line = ({ name, endpoint }: { readonly name: string; readonly endpoint: string }) =>
    `Port ${quoted(name)} of host endpoint ${quoted(endpoint)} is lost: automatic ones have no named ports`;
  return {
    obstacles: named
      .filter(({ name }) => used.has(name))
      .map((each) => ({
        message: `${line(each)}, and rules use it`,
        remedy: "write the number of the port in the rules",
      })),
    notes: named.filter(({ name }) => !used.has(name)).map(line),
  };
}
