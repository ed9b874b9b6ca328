/** Where the API is, whom to trust there and which credentials to present: reads what `KubeAccess` names. */
import type { KubeAccess } from "../config/kube-access.ts";
import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { ChangingFile } from "./changing-file.ts";
import { type CredentialSource, openCredentials, openMaterial } from "./credentials.ts";
import type { ExecMeans } from "./exec-credential.ts";
import { kubeconfigInvalid } from "./failure.ts";
import { type ChosenContext, chooseContext } from "./kubeconfig.ts";
import type { KubeCluster, KubeUser } from "./kubeconfig-entries.ts";
import { serverFromEnvironment } from "./server-from-environment.ts";

/** Where a pod finds the token and the CA of its service account. */
export const SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount";

export interface ConnectionMeans extends ExecMeans {
  /** Logs a warning. */
  readonly warn: (message: string) => void;
  readonly serviceAccountDirectory?: string;
}

export interface Connection {
  readonly server: string;
  /** The root certificates, one string each; `undefined`: those of the runtime. */
  readonly roots: () => Promise<string[]> | undefined;
  readonly cluster: KubeCluster;
  readonly credentials: CredentialSource;
}

export async function openConnection(access: KubeAccess, means: ConnectionMeans): Promise<Connection> {
  const chosen = withOverrides(await contextOf(access, means), access);
  const { cluster, user, source } = chosen;
  if (cluster.skipsTlsVerification) {
    means.warn(
      `The certificate of the Kubernetes API "${cluster.server}" is not verified: ${source} has "insecure-skip-tls-verify"; use "certificate-authority-data" instead`,
    );
  }
  const credentials = openCredentials(user, { ...means, cluster, description: source });
  return { server: cluster.server, roots: rootsOf(cluster), cluster, credentials };
}

async function contextOf(access: KubeAccess, means: ConnectionMeans): Promise<ChosenContext> {
  if (access.kubeconfigs !== undefined) return readKubeconfigs(access.kubeconfigs, access.context);
  const server = access.apiRoot ?? serverFromEnvironment(means.environment);
  if (server === undefined) {
    throw new PluginError("config-invalid", "Cannot use the Kubernetes API: the config does not say where it is", {
      details: 'set "kubernetes.kubeconfig" to a kubeconfig file, or "kubernetes.k8s_api_root" to the URL of the API',
    });
  }
  return podContext(server, means.serviceAccountDirectory ?? SERVICE_ACCOUNT_DIRECTORY);
}

/** The service account of the pod that this process runs in; outside a pod there is none. */
function podContext(server: string, directory: string): ChosenContext {
  const [tokenFile, caFile] = [`${directory}/token`, `${directory}/ca.crt`];
  const user: KubeUser = statusAt(tokenFile) === undefined ? {} : { tokenFile };
  const cluster: KubeCluster = {
    server,
    ...(statusAt(caFile) === undefined ? {} : { certificateAuthority: { kind: "file", path: caFile } }),
  };
  return { cluster, user, source: "the network config" };
}

/** Of several files, as in kubectl's KUBECONFIG, those that do not exist are skipped. */
async function readKubeconfigs(files: readonly string[], context: string | undefined): Promise<ChosenContext> {
  const existing = files.filter((file) => statusAt(file) !== undefined);
  const texts = await Promise.all((existing.length === 0 ? files : existing).map(readKubeconfig));
  return chooseContext(texts, context);
}

async function readKubeconfig(file: string) {
  try {
    return { file, text: await new ChangingFile(file, "kubeconfig").read() };
  } catch (cause) {
    throw cause instanceof PluginError ? new PluginError("config-invalid", cause.message, { cause }) : cause;
  }
}

/** What the config itself says takes precedence over the kubeconfig. */
function withOverrides({ cluster, user, source }: ChosenContext, access: KubeAccess): ChosenContext {
  const { apiRoot, token, clientCertificateFile, clientKeyFile, certificateAuthorityFile } = access;
  const { skipsTlsVerification, ...verified } = cluster;
  const withRoots: KubeCluster =
    certificateAuthorityFile === undefined
      ? cluster
      : { ...verified, certificateAuthority: { kind: "file", path: certificateAuthorityFile } };
  const { tokenFile, token: _, ...withoutToken } = user;
  return {
    cluster: apiRoot === undefined ? withRoots : { ...withRoots, server: apiRoot },
    user: {
      ...(token === undefined ? user : { ...withoutToken, token }),
      ...(clientCertificateFile === undefined
        ? {}
        : { clientCertificate: { kind: "file", path: clientCertificateFile } }),
      ...(clientKeyFile === undefined ? {} : { clientKey: { kind: "file", path: clientKeyFile } }),
    },
    source,
  };
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/g;

/** Splits them again only when the file changes. */
function rootsOf({ certificateAuthority }: KubeCluster): Connection["roots"] {
  if (certificateAuthority === undefined) return () => undefined;
  const read = openMaterial(certificateAuthority, "the certificate authority");
  let from: Promise<string> | undefined;
  let roots: Promise<string[]> | undefined;
  return () => {
    const text = read();
    if (text !== from || roots === undefined) {
      from = text;
      roots = text.then((pem) => split(pem, certificateAuthority));
      roots.catch(() => {});
    }
    return roots;
  };
}

function split(pem: string, material: NonNullable<KubeCluster["certificateAuthority"]>): string[] {
  const certificates = pem.match(CERTIFICATE);
  if (certificates !== null) return certificates;
  const place = material.kind === "file" ? `"${material.path}"` : `"${material.file}"`;
  throw kubeconfigInvalid(place, "its certificate authority does not contain a PEM certificate");
}
