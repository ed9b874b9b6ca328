/** The files that a config names. Pure: `config-files.ts` checks whether they are readable. */
import type { ConfigPath } from "./problem.ts";

export interface NamedFile {
  /** The field that names it. */
  readonly path: ConfigPath;
  readonly file: string;
}

const API_FILES = [
  "kubernetes.kubeconfig",
  "policy.k8s_client_certificate",
  "policy.k8s_client_key",
  "policy.k8s_certificate_authority",
];
const ETCD_AND_API_FILES = ["etcd_key_file", "etcd_cert_file", "etcd_ca_cert_file", ...API_FILES];

/** `present`: every value that is present, by its full name. Files of an unused datastore are left out. */
export function namedFiles(present: ReadonlyMap<string, unknown>): readonly NamedFile[] {
  const usesEtcd = (present.get("datastore_type") ?? "etcdv3") === "etcdv3";
  const files: NamedFile[] = [];
  for (const field of usesEtcd ? ETCD_AND_API_FILES : API_FILES) {
    const file = present.get(field);
    if (typeof file === "string") files.push({ path: field.split("."), file });
  }
  return files;
}
