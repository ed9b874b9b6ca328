/**
 * The certificate of a server of this product, and the authority that signs it:
 *
 *   Secret     authority and certificate with their keys: replicas share them, restarts keep them
 *   ConfigMap  the authority, for those who may not read the Secret
 *
 * Both have the name of the server's Service and are deleted with it. The leading replica of the controllers writes, the others
 * read. An authority that is about to end is replaced while it still counts: both are trusted until the earlier one has ended.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { identity } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { TLS_KEYS } from "../../release/workloads/names.ts";
import { type KeyPair, makeAuthority, makeServerCertificate, namesIn, type ServerNames } from "../../tls/x509.ts";

export interface CertificateMaterial {
  /** PEM: all that count, the newest first. */
  readonly authorities: string;
  readonly authority: KeyPair;
  readonly server: KeyPair;
}

export interface CertificateOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly namespace: string;
  readonly now: () => Date;
  readonly isLeading: () => boolean;
}

/** Which certificate. */
export interface ServedCertificate {
  /** Of the Service, the Secret and the ConfigMap. */
  readonly name: string;
  /** Common name of the authority. */
  readonly authority: string;
  /** What the server is called, by its Service. */
  readonly namesOf: (service: Readonly<Record<string, unknown>>) => ServerNames;
}

const DAY = 24 * 60 * 60 * 1_000;
const AUTHORITY_DAYS = 3_650;
const SERVER_DAYS = 365;
/** Clocks differ. */
const EARLIER = 60 * 60 * 1_000;

/** The material as it is to be used now; `undefined` until the leading replica has made one. */
export async function keepCertificate(
  options: CertificateOptions,
  { name, authority, namesOf }: ServedCertificate,
): Promise<CertificateMaterial | undefined> {
  const { client, namespace, isLeading } = options;
  const found = await readMaterial(client, pathOf("secrets", namespace, name));
  if (!isLeading()) return found;
  const service = await readService(client, pathOf("services", namespace, name));
  const metadata = isObject(service["metadata"]) ? service["metadata"] : {};
  const owner = { apiVersion: "v1", kind: "Service", name, uid: metadata["uid"] };
  const place = { name, namespace, ownerReferences: [owner] };
  const wanted = renewed(found, { authority, names: namesOf(service) }, options.now());
  if (wanted !== found) {
    // Another replica may lead by now.
    if (!isLeading()) return found;
    await apply(client, pathOf("secrets", namespace, name), secretWith(wanted, place));
  }
  await apply(client, pathOf("configmaps", namespace, name), {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: place },
    data: { [TLS_KEYS.authorities]: wanted.authorities },
  });
  return wanted;
}

/** The same value if nothing has to be renewed. Pure, except for new keys. */
export function renewed(
  found: CertificateMaterial | undefined,
  { authority: name, names }: { readonly authority: string; readonly names: ServerNames },
  now: Date,
): CertificateMaterial {
  const validity = (days: number) => ({
    from: new Date(now.getTime() - EARLIER),
    until: new Date(now.getTime() + days * DAY),
  });
  const keepsAuthority = found !== undefined && isFresh(found.authority.certificate, now);
  const authority = keepsAuthority ? found.authority : makeAuthority(name, validity(AUTHORITY_DAYS));
  if (keepsAuthority && isFresh(found.server.certificate, now) && isFor(found.server.certificate, names)) return found;
  const server = makeServerCertificate(authority, { names, validity: validity(SERVER_DAYS) });
  const earlier = keepsAuthority
    ? certificatesIn(found.authorities).slice(1)
    : certificatesIn(found?.authorities ?? "");
  const counting = earlier.filter((certificate) => endOf(certificate) > now.getTime());
  return { authority, server, authorities: [authority.certificate, ...counting].join("") };
}

/** More than a third of its time is left. */
function isFresh(certificate: string, now: Date): boolean {
  const { validFrom, validTo } = new X509Certificate(certificate);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  return to - now.getTime() > (to - from) / 3;
}

/** For all of these names and no other: it counts for as long as it is valid, and a name may be taken back. */
function isFor(certificate: string, names: ServerNames): boolean {
  return new Set(namesIn(certificate)).symmetricDifference(new Set<string>(names)).size === 0;
}

function endOf(certificate: string): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

function certificatesIn(text: string): readonly string[] {
  return (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((each) => `${each}\n`);
}

function pathOf(plural: "secrets" | "configmaps" | "services", namespace: string, name: string): string {
  return `/api/v1/namespaces/${namespace}/${plural}/${name}`;
}

async function readMaterial(
  client: Pick<KubeClient, "request">,
  path: string,
): Promise<CertificateMaterial | undefined> {
  const request: KubeRequest = { method: "GET", path };
  const response = await client.request(request);
  if (response.status === 404) return undefined;
  const secret: unknown = parseJson(requireOk(response, request));
  const data = isObject(secret) && isObject(secret["data"]) ? secret["data"] : {};
  const textOf = (key: string) => (typeof data[key] === "string" ? Buffer.from(data[key], "base64").toString() : "");
  const authorities = textOf(TLS_KEYS.authorities);
  const [certificate] = certificatesIn(authorities);
  const [authorityKey, server, key] = [
    textOf(TLS_KEYS.authorityKey),
    textOf(TLS_KEYS.certificate),
    textOf(TLS_KEYS.key),
  ];
  // One that somebody has emptied or changed is made again.
  if (certificate === undefined || !isPair(certificate, authorityKey) || !isPair(server, key)) return undefined;
  return { authorities, authority: { certificate, key: authorityKey }, server: { certificate: server, key } };
}

function isPair(certificate: string, key: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(key));
  } catch {
    return false;
  }
}

function toBase64(text: string): string {
  return Buffer.from(text).toString("base64");
}

async function readService(
  client: Pick<KubeClient, "request">,
  path: string,
): Promise<Readonly<Record<string, unknown>>> {
  const request: KubeRequest = { method: "GET", path };
  const service: unknown = parseJson(requireOk(await client.request(request), request));
  return isObject(service) ? service : {};
}

function secretWith({ authorities, authority, server }: CertificateMaterial, metadata: object): object {
  return {
    ...{ apiVersion: "v1", kind: "Secret", type: "Opaque", metadata },
    data: {
      [TLS_KEYS.authorities]: toBase64(authorities),
      [TLS_KEYS.authorityKey]: toBase64(authority.key),
      [TLS_KEYS.certificate]: toBase64(server.certificate),
      [TLS_KEYS.key]: toBase64(server.key),
    },
  };
}

/** As JSON: the API takes no other form for less. The same object changes nothing. */
async function apply(client: Pick<KubeClient, "request">, path: string, object: object): Promise<void> {
  const request: KubeRequest = {
    ...{ method: "PATCH", path, query: { fieldManager: identity.controllers, force: "true" }, attempt: "retry" },
    contentType: "application/apply-patch+yaml",
    body: JSON.stringify(object),
  };
  requireOk(await client.request(request), request);
}
