/**
 * Fields that are decoded but not yet implemented in this release.
 *
 * Every call logs a warning about them, and `config check` reports them: nobody
 * should rely on a policy that is not enforced. Remove a row when its field is
 * implemented.
 */
import type { ConfigProblem } from "./problem.ts";

/** By full field name: what does not happen although the field requests it. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  "policy.type": "network policy is not enforced, all traffic passes",
  policy_setup_timeout_seconds: "pods do not wait for their policy",
  endpoint_status_dir: "pods do not wait for their policy",
  "feature_control.ip_addrs_no_ipam": "the ipAddrsNoIpam annotation is not read",
  "feature_control.floating_ips": "the floatingIPs annotation is not read",
  "kubernetes.kubeconfig": "annotations and labels of pods and namespaces are not read",
  "kubernetes.k8s_api_root": "annotations and labels of pods and namespaces are not read",
  "policy.k8s_api_root": "annotations and labels of pods and namespaces are not read",
  "policy.k8s_auth_token": "annotations and labels of pods and namespaces are not read",
  "policy.k8s_client_certificate": "annotations and labels of pods and namespaces are not read",
  "policy.k8s_client_key": "annotations and labels of pods and namespaces are not read",
  "policy.k8s_certificate_authority": "annotations and labels of pods and namespaces are not read",
};

/** `present`: every value that is present, by its full name. A feature that is switched off needs no warning. */
export function withoutEffect(present: ReadonlyMap<string, unknown>): readonly ConfigProblem[] {
  return Object.entries(WITHOUT_EFFECT).flatMap(([field, consequence]) => {
    if (!present.has(field) || present.get(field) === false) return [];
    const message = `"${field}" has no effect in this version: ${consequence}; remove it, or do not rely on it`;
    return [{ path: field.split("."), message }];
  });
}
