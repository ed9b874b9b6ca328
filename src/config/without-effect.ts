/**
 * Fields that are understood and that no part of this release carries out yet.
 *
 * A config that relies on one of them is told so, at each call in the log and
 * by `config check`: nobody may believe in a policy that is not enforced.
 * A row goes when the part that acts on its field exists.
 */
import type { ConfigProblem } from "./problem.ts";

/** By full field name: what does not happen although the field asks for it. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  "policy.type": "network policy is not enforced, all traffic passes",
  policy_setup_timeout_seconds: "pods do not wait for their policy",
  endpoint_status_dir: "pods do not wait for their policy",
  "feature_control.ip_addrs_no_ipam": "the ipAddrsNoIpam annotation is not read",
  "feature_control.floating_ips": "the floatingIPs annotation is not read",
  "kubernetes.kubeconfig": "annotations and labels of pods and namespaces are not read",
  "kubernetes.k8s_api_root": "annotations and labels of pods and namespaces are not read",
};

/** `present`: every value that was given, by its full name. A feature that is switched off asks for nothing. */
export function withoutEffect(present: ReadonlyMap<string, unknown>): readonly ConfigProblem[] {
  return Object.entries(WITHOUT_EFFECT).flatMap(([field, consequence]) => {
    if (!present.has(field) || present.get(field) === false) return [];
    const message = `"${field}" has no effect in this version: ${consequence}; remove it, or do not rely on it`;
    return [{ path: field.split("."), message }];
  });
}
