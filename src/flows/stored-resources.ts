/**
 * The resources that policy depended on at one moment, as `flows explain` needs them: the agent writes them as texts, the
 * collector keeps them as texts. Pure.
 */
import type { KindTable } from "../datastore/replica/kinds.ts";
import { ENDPOINT } from "../model/kinds.ts";
import type { NodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import { isObject } from "../model/shape.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";
import { parseJson } from "../parse-json.ts";
import { POLICY_KINDS, type PolicyValues, STAGED_KINDS, type StagedValues } from "../policy/inputs.ts";
import type { PolicyResources } from "../policy/judge/resources.ts";
import { closedGlobalPolicy, closedPolicy } from "../policy/read-resources.ts";
import type { StagedPolicy } from "../policy/staged-set.ts";

/** All that policy depends on, except endpoints: those of a flow are in its record. */
export const STORED_KINDS = [
  ...(["containerLabels", "hostEndpoints", "profiles", "networkPolicies", "globalNetworkPolicies"] as const),
  ...(["networkSets", "globalNetworkSets", "tiers", "configurations", "serviceEndpoints"] as const),
] as const satisfies readonly (keyof PolicyValues)[];

/** Told after all others: whoever knows of a staged policy knows what it would take part in. */
export const STORED_STAGED_KINDS = [
  ...(["stagedNetworkPolicies", "stagedGlobalNetworkPolicies", "stagedKubernetesNetworkPolicies"] as const),
] as const satisfies readonly (keyof StagedValues)[];
export type StoredKind = (typeof STORED_KINDS)[number] | keyof StagedValues;

export function isStagedKind(kind: string): kind is keyof StagedValues {
  return Object.hasOwn(STAGED_KINDS, kind);
}

export interface StoredResource {
  readonly kind: string;
  readonly key: string;
  readonly value: string;
}

/** The text of a record that the agent itself cannot read. */
export const UNREADABLE = "unreadable";

export interface ReadResources {
  readonly resources: PolicyResources;
  readonly configurations: readonly NodeAgentConfiguration[];
  readonly staged: readonly StagedPolicy[];
  readonly unreadableStaged: number;
}

/** `endpoints`: texts of `EndName.endpoint`. What cannot be read counts as little as in the agent: policies deny then. */
export function readStoredResources(stored: Iterable<StoredResource>, endpoints: readonly string[]): ReadResources {
  const byKind = Map.groupBy(stored, ({ kind }) => kind);
  const read = <Kind extends StoredKind>(kind: Kind) => {
    const all = (byKind.get(kind) ?? []).map(({ key, value }) => ({ key, value: decoded(kind, key, value) }));
    const unreadable = all.filter(({ value }) => value === undefined);
    return { readable: all.flatMap(({ value }) => value ?? []), unreadable };
  };
  const staged = STORED_STAGED_KINDS.map((kind) => read(kind));
  const [policies, globalPolicies] = [read("networkPolicies"), read("globalNetworkPolicies")];
  // Where there are Services, there is at least that of the API server.
  const serviceEndpoints = read("serviceEndpoints").readable;
  return {
    configurations: read("configurations").readable,
    staged: staged.flatMap(({ readable }): readonly StagedPolicy[] => readable),
    unreadableStaged: staged.reduce((sum, { unreadable }) => sum + unreadable.length, 0),
    resources: {
      endpoints: endpoints.flatMap((text) => readEndpoint(text) ?? []),
      containerLabels: read("containerLabels").readable,
      hostEndpoints: read("hostEndpoints").readable,
      profiles: read("profiles").readable,
      networkPolicies: [...policies.readable, ...policies.unreadable.map(closedPolicy)],
      globalNetworkPolicies: [...globalPolicies.readable, ...globalPolicies.unreadable.map(closedGlobalPolicy)],
      networkSets: read("networkSets").readable,
      globalNetworkSets: read("globalNetworkSets").readable,
      tiers: read("tiers").readable,
      ...(serviceEndpoints.length === 0 ? {} : { serviceEndpoints }),
    },
  };
}

type StoredValues = PolicyValues & StagedValues;

const SOURCES: KindTable<StoredValues> = { ...POLICY_KINDS, ...STAGED_KINDS };

function decoded<Kind extends StoredKind>(kind: Kind, key: string, value: string): StoredValues[Kind] | undefined {
  if (value === UNREADABLE) return undefined;
  try {
    return SOURCES[kind].decode({ key, value, revision: "0" });
  } catch {
    return undefined;
  }
}

/** `EndName.endpoint`. */
export function readEndpoint(text: string): WorkloadEndpoint | undefined {
  try {
    const read = parseJson(text);
    const metadata = isObject(read) ? read["metadata"] : undefined;
    const { name, namespace } = isObject(metadata) ? metadata : {};
    if (typeof name !== "string" || typeof namespace !== "string") return undefined;
    return ENDPOINT.codec.read(text, ENDPOINT.key({ name, namespace }));
  } catch {
    return undefined;
  }
}
