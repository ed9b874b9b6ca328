/**
 * The credentials of a user: client certificate, token, password or exec plugin.
 * Files are read again when they change, and exec plugins run again before their
 * credentials expire, so that a process may run for months.
 */
import { PluginError } from "../errors.ts";
import { ChangingFile } from "./changing-file.ts";
import type { ExecMeans } from "./exec-credential.ts";
import type { KubeCluster, KubeUser, Material } from "./kubeconfig-entries.ts";

/** What one request presents. */
export interface Credentials {
  readonly authorization?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface CredentialSource {
  current(): Promise<Credentials>;
  /** The server rejected the current ones: returns whether there may be new ones. */
  renew(): boolean;
  /** Where they come from, for messages. */
  readonly description: string;
}

export interface CredentialMeans extends ExecMeans {
  readonly cluster: KubeCluster;
  readonly description: string;
}

export function openCredentials(user: KubeUser, means: CredentialMeans): CredentialSource {
  const cert = user.clientCertificate && openMaterial(user.clientCertificate, "the client certificate");
  const key = user.clientKey && openMaterial(user.clientKey, "the key of the client certificate");
  const tokenFile = user.tokenFile === undefined ? undefined : new ChangingFile(user.tokenFile, "the token file");
  const exec = user.exec === undefined ? undefined : openExec(user.exec, means);
  return {
    description: describe(user, means.description),
    async current() {
      const issued = await exec?.current();
      const token = issued?.token ?? (tokenFile === undefined ? user.token : await tokenFrom(tokenFile));
      const authorization = authorizationOf(token, user);
      const certificate = issued?.cert ?? (await cert?.());
      const ownKey = issued?.key ?? (await key?.());
      return {
        ...(authorization === undefined ? {} : { authorization }),
        ...(certificate === undefined || ownKey === undefined ? {} : { cert: certificate, key: ownKey }),
      };
    },
    renew() {
      exec?.forget();
      tokenFile?.forget();
      return exec !== undefined || tokenFile !== undefined;
    },
  };
}

/** Returns a function that reads the PEM text: it returns the same promise until the file changes. */
export function openMaterial(material: Material, title: string): () => Promise<string> {
  if (material.kind === "data") {
    const pem = Promise.resolve(material.pem);
    return () => pem;
  }
  const file = new ChangingFile(material.path, `${title} file`);
  return () => file.read();
}

async function tokenFrom(file: ChangingFile): Promise<string> {
  const token = (await file.read()).trim();
  if (token !== "") return token;
  file.forget();
  throw new PluginError("io-failure", `Cannot use the token file "${file.path}": it is empty`);
}

function authorizationOf(token: string | undefined, { basic }: KubeUser): string | undefined {
  if (token !== undefined) return `Bearer ${token}`;
  return basic && `Basic ${Buffer.from(`${basic.name}:${basic.password}`).toString("base64")}`;
}

interface Exec {
  current(): Promise<{ readonly token?: string; readonly cert?: string; readonly key?: string }>;
  forget(): void;
}

/** Loaded when it is needed: most clusters use certificates or tokens. */
function openExec(plugin: NonNullable<KubeUser["exec"]>, means: CredentialMeans): Exec {
  const opening = import("./exec-credential.ts").then(({ ExecCredentials }) => new ExecCredentials(plugin, means));
  opening.catch(() => {});
  return {
    current: async () => (await opening).current(),
    forget: () => void opening.then((credentials) => credentials.forget()),
  };
}

function describe({ clientCertificate, exec, tokenFile, token, basic }: KubeUser, source: string): string {
  if (exec !== undefined) return `exec plugin "${exec.command}" of ${source}`;
  if (tokenFile !== undefined) return `token file "${tokenFile}"`;
  if (token !== undefined) return `token of ${source}`;
  if (basic !== undefined) return `user name and password of ${source}`;
  if (clientCertificate?.kind === "file") return `client certificate "${clientCertificate.path}"`;
  if (clientCertificate?.kind === "data") return `client certificate of ${source}`;
  return `no credentials (${source})`;
}
