/**
 * The controllers that copy the orchestrator's objects into the datastore, under names that only they use:
 *
 *   policy           NetworkPolicy    -> NetworkPolicy knp.default.NAME
 *   namespace        Namespace        -> Profile kns.NAME
 *   serviceAccount   ServiceAccount   -> Profile ksa.NAMESPACE.NAME
 */
import { titleInKey } from "../model/keys.ts";
import { NETWORK_POLICY, PROFILE } from "../model/kinds.ts";
import { ORCHESTRATOR_POLICY } from "../model/orchestrator-policy.ts";
import { ACCOUNT_PROFILE, NAMESPACE_PROFILE } from "../model/orchestrator-profile.ts";
import type { Controller, Proposal } from "./controller.ts";
import type { Facts, FactsUpdate } from "./facts.ts";
import { type Mirror, mirrorChange } from "./mirror.ts";

type MirroredKind = "policies" | "profiles";

export const policyController = mirrorController("policy", "policies", {
  codec: NETWORK_POLICY.codec,
  owns: (name) => name.startsWith(ORCHESTRATOR_POLICY),
});

export const namespaceController = mirrorController("namespace", "profiles", {
  codec: PROFILE.codec,
  owns: (name) => name.startsWith(NAMESPACE_PROFILE),
});

export const serviceAccountController = mirrorController("serviceAccount", "profiles", {
  codec: PROFILE.codec,
  owns: (name) => name.startsWith(ACCOUNT_PROFILE),
});

function mirrorController(name: string, kind: MirroredKind, mirror: Mirror): Controller {
  const isOwn = (key: string) => mirror.owns(key.slice(key.lastIndexOf("/") + 1));
  return {
    name,
    follows: { orchestrator: [kind], stored: [kind] },
    keysOf: ({ orchestrator, stored }: FactsUpdate) => {
      const changes = [...(orchestrator[kind] ?? []), ...(stored[kind] ?? [])];
      return changes.map(({ key }) => key).filter(isOwn);
    },
    allKeys: ({ orchestrator, stored }: Facts) =>
      new Set([...orchestrator[kind].keys(), ...stored[kind].keys()].filter(isOwn)),
    removals: ({ orchestrator, stored }: Facts) => {
      const own = Array.from(stored[kind].keys()).filter(isOwn);
      return { keys: own.filter((key) => orchestrator[kind].held(key) === undefined), total: own.length };
    },
    decide: (key, facts): Proposal | undefined => {
      const change = mirrorChange(mirror, {
        key,
        wanted: facts.orchestrator[kind].get(key),
        stored: facts.stored[kind].held(key),
      });
      if (change === undefined) return undefined;
      const reason = `${PAST[change.kind]} ${mirror.codec.kind} ${titleInKey(key)}`;
      // One copy less may open what the object denies.
      return { changes: [change], reason, ...(change.kind === "delete" ? { confirm: { absent: key } } : {}) };
    },
  };
}

const PAST: Readonly<Record<string, string>> = { create: "created", update: "updated", delete: "deleted" };
