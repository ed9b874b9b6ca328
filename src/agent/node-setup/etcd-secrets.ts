/** The credentials for etcd that are mounted in the container; absent and empty files are not used. */
import { readFileSync } from "node:fs";
import { ETCD_SECRET_KEYS } from "../../config/etcd-secret-keys.ts";

export interface EtcdSecret {
  /** Of the network config. */
  readonly field: string;
  readonly name: string;
  readonly source: string;
  readonly text: string;
}

const NAMES = {
  etcd_ca_cert_file: ETCD_SECRET_KEYS.caCert,
  etcd_cert_file: ETCD_SECRET_KEYS.cert,
  etcd_key_file: ETCD_SECRET_KEYS.key,
} as const;

export const ETCD_FILE_NAMES: readonly string[] = Object.values(NAMES);

export function etcdSecrets(directory: string): readonly EtcdSecret[] {
  return Object.entries(NAMES).flatMap(([field, name]) => {
    const source = `${directory}/${name}`;
    const text = textOf(source);
    return text.trim() === "" ? [] : [{ field, name, source, text }];
  });
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
