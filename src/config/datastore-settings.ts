/** Derives from the config which datastore to open, and its settings. Pure: opens nothing. */
import { type KubeAccess, kubeAccess } from "./kube-access.ts";
import type { NetworkConfig } from "./network-config.ts";

export type DatastoreSettings =
  | { readonly kind: "embedded"; readonly path: string }
  | {
      readonly kind: "etcd";
      readonly source: EtcdSource;
      readonly keyFile?: string;
      readonly certFile?: string;
      readonly caCertFile?: string;
      /** Instead of files: PEM texts. */
      readonly inline?: InlineCertificates;
    }
  | { readonly kind: "orchestrator"; readonly access: KubeAccess };

export interface InlineCertificates {
  readonly key?: string;
  readonly cert?: string;
  readonly caCert?: string;
}

export type EtcdSource =
  | { readonly kind: "endpoints"; readonly endpoints: readonly string[] }
  | { readonly kind: "discovery"; readonly domain: string };

export function datastoreSettings(config: NetworkConfig): DatastoreSettings {
  switch (config.datastoreType) {
    case "embedded":
      return { kind: "embedded", path: config.datastorePath };
    case "orchestrator":
      return { kind: "orchestrator", access: kubeAccess(config) ?? {} };
    case "etcdv3": {
      const { keyFile, certFile, caCertFile } = config.etcd;
      return {
        kind: "etcd",
        source: etcdSource(config.etcd),
        ...(keyFile === undefined ? {} : { keyFile }),
        ...(certFile === undefined ? {} : { certFile }),
        ...(caCertFile === undefined ? {} : { caCertFile }),
      };
    }
  }
}

/** The deprecated authority and scheme are used only if nothing else is set. */
function etcdSource(etcd: NetworkConfig["etcd"]): EtcdSource {
  if (etcd.endpoints !== undefined) return { kind: "endpoints", endpoints: etcd.endpoints };
  if (etcd.discoveryDomain !== undefined) return { kind: "discovery", domain: etcd.discoveryDomain };
  return { kind: "endpoints", endpoints: [`${etcd.scheme}://${etcd.authority}`] };
}
