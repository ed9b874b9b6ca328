/** Roles without what only pods of the earlier release needed; what a user has added stays. Pure. */

import { apiVersionOf } from "../../../identity.ts";
import type { KubeObject } from "../../../release/kube-object.ts";
import { FORMER_API } from "../../former-names.ts";
import { type LiveManifest, liveOf } from "../../manifest-install/live-manifest.ts";
import type { WantedObject } from "../../manifest-install/wanted.ts";
import { canonicalJson } from "../../merge/canonical-json.ts";
import { itemsIn } from "../../object-fields.ts";

const GROUP = apiVersionOf(FORMER_API).replace(/\/.*$/, "");

export function finalRoles(
  release: readonly KubeObject[],
  live: LiveManifest,
  stock: readonly KubeObject[] | undefined,
): readonly WantedObject[] {
  return release.filter(isRole).map((role) => {
    const published = stock?.find(({ kind, metadata }) => kind === role.kind && metadata.name === role.metadata.name);
    const known = new Set([...itemsIn(role, "rules"), ...itemsIn(published, "rules")].map(canonicalJson));
    const added = itemsIn(liveOf(live, role), "rules").filter(
      (rule) => !known.has(canonicalJson(rule)) && !isFormerRule(rule),
    );
    return { object: { ...role, rules: [...itemsIn(role, "rules"), ...added] }, mode: "whole" };
  });
}

function isRole({ kind }: KubeObject): boolean {
  return kind === "ClusterRole" || kind === "Role";
}

/** About the resources as the earlier release stored them. */
function isFormerRule(rule: object): boolean {
  const groups = (rule as { readonly apiGroups?: unknown }).apiGroups;
  return Array.isArray(groups) && groups.includes(GROUP);
}
