/**
 * The controllers that copy the orchestrator's objects into the datastore, under names that only they use:
 *
 *   policy           NetworkPolicy          -> NetworkPolicy knp.default.NAME
 *                    ClusterNetworkPolicy   -> GlobalNetworkPolicy kcnp.NAME
 *   namespace        Namespace              -> Profile kns.NAME
 *   serviceAccount   ServiceAccount         -> Profile ksa.NAMESPACE.NAME
 */
import { clusterPolicyName } from "../model/cluster-network-policy.ts";
import { titleInKey } from "../model/keys.ts";
import { GLOBAL_NETWORK_POLICY, NETWORK_POLICY, PROFILE } from "../model/kinds.ts";
import { ORCHESTRATOR_POLICY } from "../model/orchestrator-policy.ts";
import { ACCOUNT_PROFILE, NAMESPACE_PROFILE } from "../model/orchestrator-profile.ts";
import type { Controller, Proposal } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";
import { type Mirror, mirrorChange } from "./mirror.ts";

type MirroredKind = "policies" | "clusterPolicies" | "profiles";

/** The copies of one kind. */
interface MirroredRecords extends Mirror {
  readonly kind: MirroredKind;
  readonly prefix: string;
}

export const policyController = mirrorController("policy", [
  {
    ...{ kind: "policies", prefix: NETWORK_POLICY.prefix(), codec: NETWORK_POLICY.codec },
    owns: (name) => name.startsWith(ORCHESTRATOR_POLICY),
  },
  {
    ...{ kind: "clusterPolicies", prefix: GLOBAL_NETWORK_POLICY.prefix(), codec: GLOBAL_NETWORK_POLICY.codec },
    owns: (name) => clusterPolicyName(name) !== undefined,
  },
]);

export const namespaceController = profileController("namespace", NAMESPACE_PROFILE);

export const serviceAccountController = profileController("serviceAccount", ACCOUNT_PROFILE);

function profileController(name: string, prefix: string): Controller {
  const records = { kind: "profiles", prefix: PROFILE.prefix(), codec: PROFILE.codec } as const;
  return mirrorController(name, [{ ...records, owns: (profile) => profile.startsWith(prefix) }]);
}

function mirrorController(name: string, mirrors: readonly MirroredRecords[]): Controller {
  const kinds = mirrors.map(({ kind }) => kind);
  const mirrorOf = (key: string) =>
    mirrors.find(({ prefix, owns }) => key.startsWith(prefix) && owns(key.slice(key.lastIndexOf("/") + 1)));
  const isOwn = (key: string) => mirrorOf(key) !== undefined;
  return {
    name,
    follows: { orchestrator: kinds, stored: kinds },
    keysOf: ({ orchestrator, stored }: FactsUpdate) => {
      const changes = kinds.flatMap((kind) => [...(orchestrator[kind] ?? []), ...(stored[kind] ?? [])]);
      return changes.map(({ key }) => key).filter(isOwn);
    },
    allKeys: ({ orchestrator, stored }: Facts) =>
      new Set(kinds.flatMap((kind) => [...orchestrator[kind].keys(), ...stored[kind].keys()]).filter(isOwn)),
    removals: ({ orchestrator, stored }: Facts) => {
      const copies = kinds.map((kind) => ({ kind, own: Array.from(stored[kind].keys()).filter(isOwn) }));
      return {
        keys: copies.flatMap(({ kind, own }) => own.filter((key) => orchestrator[kind].held(key) === undefined)),
        total: copies.reduce((sum, { own }) => sum + own.length, 0),
      };
    },
    decide: (key, facts): Proposal | undefined => {
      const mirror = mirrorOf(key);
      if (mirror === undefined) return undefined;
      const change = mirrorChange(mirror, {
        key,
        wanted: facts.orchestrator[mirror.kind].get(key),
        stored: facts.stored[mirror.kind].held(key),
      });
      if (change === undefined) return undefined;
      const reason = `${PAST[change.kind]} ${mirror.codec.kind} ${titleInKey(key)}`;
      // One copy less may open what the object denies.
      return { changes: [change], reason, ...(change.kind === "delete" ? { confirm: { absent: key } } : {}) };
    },
  };
}

const PAST: Readonly<Record<string, string>> = { create: "created", update: "updated", delete: "deleted" };
