/** Rules about several fields. They are checked on the fields that are present, even if some values are invalid. */
import { identity, ORCHESTRATOR_NAMES } from "../identity.ts";
import type { ConfigProblem } from "./problem.ts";

/** Something that works, but perhaps not as intended. Same type as a problem. */
export type ConfigWarning = ConfigProblem;

/** Every value that is present, by its full name such as `ipam.type`. */
type Present = ReadonlyMap<string, unknown>;

export function crossProblems(present: Present): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  if (present.has("etcd_endpoints") && present.has("etcd_discovery_srv")) {
    const state = 'is set together with "etcd_endpoints": only one of the two is allowed; remove one of them';
    problems.push(finding("etcd_discovery_srv", state));
  }
  for (const [certificate, key] of KEY_PAIRS) {
    if (present.has(certificate) !== present.has(key)) problems.push(withoutPartner(present, certificate, key));
  }
  return problems;
}

export function crossWarnings(present: Present): readonly ConfigWarning[] {
  const warnings: ConfigWarning[] = [];
  if (!present.has("cniVersion")) {
    warnings.push(finding("cniVersion", 'is missing: the config is read as CNI version 0.1.0; add "cniVersion"'));
  }
  if (present.has("etcd_authority") || present.has("etcd_scheme")) warnings.push(deprecation(present));
  if (present.get("ipam.type") === identity.ipamType) warnings.push(...ipamWarnings(present));
  warnings.push(...switchWarnings(present));
  if (present.has(CLUSTER_SOURCES) && present.get(SOURCES_SWITCH) !== true)
    warnings.push(finding(CLUSTER_SOURCES, `has no effect: "${SOURCES_SWITCH}" is not true`));
  const plainEtcd = isPlainText(present.get("etcd_endpoints"));
  for (const [field, value] of present) {
    if (plainEtcd && TLS_FIELDS.has(field)) {
      warnings.push(finding(field, 'has no effect: no URL in "etcd_endpoints" starts with https://'));
    }
    if (PATH_FIELDS.has(field) && typeof value === "string" && !value.startsWith("/")) {
      warnings.push(
        finding(field, "is a relative path: it depends on the working directory of the runtime; use an absolute path"),
      );
    }
  }
  return warnings;
}

const KEY_PAIRS = [
  ["etcd_cert_file", "etcd_key_file"],
  ["policy.k8s_client_certificate", "policy.k8s_client_key"],
] as const;

function withoutPartner(present: Present, certificate: string, key: string): ConfigProblem {
  const [field, partner] = present.has(certificate) ? [certificate, key] : [key, certificate];
  return finding(field, `is set without "${partner}": mutual TLS needs both; add "${partner}" or remove "${field}"`);
}

const TLS_FIELDS = new Set(["etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file"]);

/** Every field that contains the path of a file or directory on the host. */
const PATH_FIELDS = new Set([
  ...TLS_FIELDS,
  "nodename_file",
  "datastore_path",
  "log_file_path",
  "endpoint_status_dir",
  "kubernetes.kubeconfig",
  "policy.k8s_client_certificate",
  "policy.k8s_client_key",
  "policy.k8s_certificate_authority",
]);

function deprecation(present: Present): ConfigWarning {
  const given = ["etcd_authority", "etcd_scheme"].filter((field) => present.has(field));
  const names = `${given.map((field) => `"${field}"`).join(" and ")} ${given.length === 1 ? "is" : "are"}`;
  const winner = ["etcd_endpoints", "etcd_discovery_srv"].find((field) => present.has(field));
  const message =
    winner === undefined
      ? `${names} deprecated: write "etcd_endpoints" instead`
      : `${names} deprecated, and ignored because "${winner}" is set: remove ${given.length === 1 ? "it" : "them"}`;
  return { path: given.slice(0, 1), message };
}

function ipamWarnings(present: Present): readonly ConfigWarning[] {
  if (present.get("ipam.assign_ipv6") === "true") return [];
  const warnings: ConfigWarning[] = [];
  if (present.has("ipam.ipv6_pools")) {
    warnings.push(finding("ipam.ipv6_pools", 'is ignored: "assign_ipv6" is not "true"'));
  }
  if (present.get("ipam.assign_ipv4") === "false") {
    const state = 'is "false" and so is "assign_ipv6": only pods that request an address get one';
    warnings.push(finding("ipam.assign_ipv4", state));
  }
  return warnings;
}

const SOURCES_SWITCH = "feature_control.allowed_source_prefixes";
const CLUSTER_SOURCES = "feature_control.cluster_source_prefixes";

const FEATURES = ["ip_addrs_no_ipam", "floating_ips", "allowed_source_prefixes"];
const API_FIELDS = ["kubernetes.kubeconfig", "kubernetes.k8s_api_root", "policy.k8s_api_root"];

/** Annotations are read from the orchestrator's API. */
function switchWarnings(present: Present): readonly ConfigWarning[] {
  const datastore = present.get("datastore_type");
  if (API_FIELDS.some((field) => present.has(field)) || ORCHESTRATOR_NAMES.some((name) => name === datastore))
    return [];
  const switches = FEATURES.map((name) => `feature_control.${name}`);
  const state = 'has no effect: annotations are read only with "kubernetes.kubeconfig" or "kubernetes.k8s_api_root"';
  return switches.filter((field) => present.get(field) === true).map((field) => finding(field, state));
}

function isPlainText(endpoints: unknown): boolean {
  return typeof endpoints === "string" && !endpoints.toLowerCase().includes("https:");
}

function finding(field: string, state: string): ConfigProblem {
  return { path: field.split("."), message: `"${field}" ${state}` };
}
