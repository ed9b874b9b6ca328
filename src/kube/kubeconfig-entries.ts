/** Decodes the clusters and users of a kubeconfig. Pure: the files that they name are read elsewhere. */
import { kubeconfigInvalid } from "./failure.ts";

/** Inline data (PEM) or the file that contains it. */
export type Material =
  | { readonly kind: "data"; readonly pem: string; readonly field: string; readonly file: string }
  | { readonly kind: "file"; readonly path: string };

export interface ExecPlugin {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint: string;
  readonly provideClusterInfo: boolean;
  readonly interactiveMode: string;
  /** The kubeconfig that names it. */
  readonly file: string;
}

export interface KubeCluster {
  readonly server: string;
  readonly certificateAuthority?: Material;
  readonly skipsTlsVerification?: true;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
}

export interface KubeUser {
  readonly clientCertificate?: Material;
  readonly clientKey?: Material;
  readonly token?: string;
  /** Takes precedence over `token`; its content changes when the token is rotated. */
  readonly tokenFile?: string;
  readonly basic?: { readonly name: string; readonly password: string };
  readonly exec?: ExecPlugin;
}

/** An object in a kubeconfig file. */
export interface FileEntry {
  readonly fields: Fields;
  readonly file: string;
}

export function clusterFrom(entry: FileEntry, name: string): KubeCluster {
  const where = `cluster "${name}"`;
  const server = textIn(entry, "server", where);
  if (server === undefined) throw kubeconfigInvalid(`"${entry.file}"`, `${where} has no "server"`);
  const certificateAuthority = materialIn(entry, "certificate-authority", where);
  const tlsServerName = textIn(entry, "tls-server-name", where);
  const proxyUrl = textIn(entry, "proxy-url", where);
  const skips = entry.fields["insecure-skip-tls-verify"] === true;
  if (skips && certificateAuthority !== undefined) {
    const state = `${where} has both "insecure-skip-tls-verify" and a certificate authority`;
    throw kubeconfigInvalid(`"${entry.file}"`, state, "remove one of them");
  }
  return {
    server: serverUrl(server, { field: `the server of ${where}`, file: entry.file }),
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    ...(skips ? { skipsTlsVerification: true } : {}),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl: proxyFrom(proxyUrl, where, entry.file) }),
  };
}

/** Without a trailing slash, so that paths can be appended. */
function serverUrl(text: string, { field, file }: { readonly field: string; readonly file: string }): string {
  const url = URL.parse(text.includes("://") ? text : `https://${text}`);
  if (url === null || !["https:", "http:"].includes(url.protocol) || url.username !== "") {
    throw kubeconfigInvalid(`"${file}"`, `${field} is not an http or https URL without a user`);
  }
  return `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, "")}`;
}

function proxyFrom(text: string, where: string, file: string): string {
  const url = URL.parse(text);
  if (url !== null && ["http:", "https:"].includes(url.protocol)) return text;
  throw kubeconfigInvalid(`"${file}"`, `"proxy-url" of ${where} is not an http or https URL`, "SOCKS is not supported");
}

export function userFrom(entry: FileEntry, name: string): KubeUser {
  const where = `user "${name}"`;
  if (isFields(entry.fields["auth-provider"])) {
    const fix = 'use "exec", as current versions of the provider\'s tool write it';
    throw kubeconfigInvalid(`"${entry.file}"`, `${where} uses "auth-provider", which is no longer supported`, fix);
  }
  const clientCertificate = materialIn(entry, "client-certificate", where);
  const clientKey = materialIn(entry, "client-key", where);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    const [has, lacks] =
      clientKey === undefined ? ["client-certificate", "client-key"] : ["client-key", "client-certificate"];
    throw kubeconfigInvalid(`"${entry.file}"`, `${where} has "${has}" without "${lacks}"`);
  }
  const token = textIn(entry, "token", where);
  const tokenFile = textIn(entry, "tokenFile", where);
  const userName = textIn(entry, "username", where);
  const exec = execFrom(entry, where);
  return {
    ...(clientCertificate === undefined ? {} : { clientCertificate }),
    ...(clientKey === undefined ? {} : { clientKey }),
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile: besideFile(tokenFile, entry.file) }),
    ...(userName === undefined ? {} : { basic: { name: userName, password: textIn(entry, "password", where) ?? "" } }),
    ...(exec === undefined ? {} : { exec }),
  };
}

function execFrom({ fields, file }: FileEntry, where: string): ExecPlugin | undefined {
  const given = fields["exec"];
  if (given === undefined || given === null) return undefined;
  if (!isFields(given)) throw kubeconfigInvalid(`"${file}"`, `"exec" of ${where} is not an object`);
  const entry = { fields: given, file };
  const command = textIn(entry, "command", `"exec" of ${where}`);
  if (command === undefined) throw kubeconfigInvalid(`"${file}"`, `"exec" of ${where} has no "command"`);
  const args = given["args"] ?? [];
  if (!Array.isArray(args) || !args.every((argument) => typeof argument === "string")) {
    throw kubeconfigInvalid(`"${file}"`, `"args" of "exec" of ${where} is not a list of strings`);
  }
  return {
    apiVersion: textIn(entry, "apiVersion", `"exec" of ${where}`) ?? "",
    // A path with a slash is relative to the kubeconfig; a plain name is looked for in PATH.
    command: command.includes("/") ? besideFile(command, file) : command,
    args,
    env: variablesFrom(given["env"], where, file),
    installHint: textIn(entry, "installHint", where) ?? "",
    provideClusterInfo: given["provideClusterInfo"] === true,
    interactiveMode: textIn(entry, "interactiveMode", where) ?? "IfAvailable",
    file,
  };
}

/** `env: [{ name: A, value: b }]`. */
function variablesFrom(given: unknown, where: string, file: string): Readonly<Record<string, string>> {
  if (given === undefined || given === null) return {};
  if (!Array.isArray(given)) throw kubeconfigInvalid(`"${file}"`, `"env" of "exec" of ${where} is not a list`);
  const variables: Record<string, string> = {};
  for (const member of given) {
    const { name, value }: Fields = isFields(member) ? member : {};
    if (typeof name !== "string" || typeof value !== "string") {
      throw kubeconfigInvalid(`"${file}"`, `"env" of "exec" of ${where} has an entry without a name or a value`);
    }
    variables[name] = value;
  }
  return variables;
}

/** `NAME-data` (base64) takes precedence over the file `NAME`, as in kubectl. */
function materialIn(entry: FileEntry, name: string, where: string): Material | undefined {
  const data = textIn(entry, `${name}-data`, where);
  const path = textIn(entry, name, where);
  if (data !== undefined) {
    const pem = Buffer.from(data, "base64").toString();
    if (!pem.includes("-----BEGIN")) {
      throw kubeconfigInvalid(`"${entry.file}"`, `"${name}-data" of ${where} is not a PEM block in base64`);
    }
    return { kind: "data", pem, field: `${name}-data`, file: entry.file };
  }
  return path === undefined ? undefined : { kind: "file", path: besideFile(path, entry.file) };
}

/** A relative path is relative to the file that names it. */
function besideFile(path: string, file: string): string {
  return path.startsWith("/") ? path : file.slice(0, file.lastIndexOf("/") + 1) + path;
}

/** An empty text counts as absent. */
export function textIn({ fields, file }: FileEntry, name: string, where: string): string | undefined {
  const value = fields[name];
  if (value === undefined || value === null || value === "") return undefined;
  if (typeof value === "string") return value;
  // YAML reads an unquoted number as a number; kubectl accepts it for names.
  if (typeof value === "number") return String(value);
  throw kubeconfigInvalid(`"${file}"`, `"${name}" of ${where} is not a string`);
}

export type Fields = Readonly<Record<string, unknown>>;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
