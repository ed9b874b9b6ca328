/**
 * The certificates of the flow API and what tells others of them:
 *
 *   Secret     authority and certificate with their keys: replicas share them, restarts keep them
 *   ConfigMap  the authority, for the node agents, which may not read the Secret
 *   APIService its `caBundle`, for the API server
 *
 * The leading replica writes, the others read. An authority that is about to end is replaced while it still counts: both are
 * trusted until the earlier one has ended.
 */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { identity } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { FLOWS, FLOWS_API_SERVICE, FLOWS_AUTHORITY_KEY, flowServerName } from "../../release/workloads/names.ts";
import { type KeyPair, makeAuthority, makeServerCertificate } from "./x509.ts";

export interface FlowTls {
  /** PEM: all that count, the newest first. */
  readonly authorities: string;
  readonly authority: KeyPair;
  readonly server: KeyPair;
}

export interface FlowTlsOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly namespace: string;
  readonly now: () => Date;
  readonly isLeading: () => boolean;
}

const DAY = 24 * 60 * 60 * 1_000;
const AUTHORITY_DAYS = 3_650;
const SERVER_DAYS = 365;
/** Clocks differ. */
const EARLIER = 60 * 60 * 1_000;

/** The material as it is to be used now; `undefined` until the leading replica has made one. */
export async function keepFlowTls(options: FlowTlsOptions): Promise<FlowTls | undefined> {
  const { client, namespace, isLeading } = options;
  const found = await readMaterial(client, secretPath(namespace));
  if (!isLeading()) return found;
  const owner = await readOwner(client, namespace);
  const wanted = renewed(found, flowServerName(namespace), options.now());
  if (wanted !== found) {
    const written = await applySecret(options, wanted, owner);
    if (!written) return found;
  }
  await publish(options, wanted.authorities, owner);
  return wanted;
}

/** The same value if nothing has to be renewed. Pure, except for new keys. */
export function renewed(found: FlowTls | undefined, serverName: string, now: Date): FlowTls {
  const validity = (days: number) => ({
    from: new Date(now.getTime() - EARLIER),
    until: new Date(now.getTime() + days * DAY),
  });
  const keepsAuthority = found !== undefined && isFresh(found.authority.certificate, now);
  const authority = keepsAuthority
    ? found.authority
    : makeAuthority(`${identity.product} flows`, validity(AUTHORITY_DAYS));
  if (keepsAuthority && isFresh(found.server.certificate, now) && isFor(found.server.certificate, serverName))
    return found;
  const server = makeServerCertificate(authority, { dnsNames: [serverName], validity: validity(SERVER_DAYS) });
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

function isFor(certificate: string, serverName: string): boolean {
  return new X509Certificate(certificate).checkHost(serverName) !== undefined;
}

function endOf(certificate: string): number {
  return Date.parse(new X509Certificate(certificate).validTo);
}

function certificatesIn(text: string): readonly string[] {
  return (text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).map((each) => `${each}\n`);
}

function secretPath(namespace: string): string {
  return `/api/v1/namespaces/${namespace}/secrets/${FLOWS}`;
}

const KEYS = {
  authorities: FLOWS_AUTHORITY_KEY,
  authorityKey: "ca.key",
  certificate: "tls.crt",
  key: "tls.key",
} as const;

async function readMaterial(client: Pick<KubeClient, "request">, path: string): Promise<FlowTls | undefined> {
  const request: KubeRequest = { method: "GET", path };
  const response = await client.request(request);
  if (response.status === 404) return undefined;
  const secret: unknown = parseJson(requireOk(response, request));
  const data = isObject(secret) && isObject(secret["data"]) ? secret["data"] : {};
  const textOf = (key: string) => (typeof data[key] === "string" ? Buffer.from(data[key], "base64").toString() : "");
  const authorities = textOf(KEYS.authorities);
  const [certificate] = certificatesIn(authorities);
  const [authorityKey, server, key] = [textOf(KEYS.authorityKey), textOf(KEYS.certificate), textOf(KEYS.key)];
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

/** Returns false if another replica leads by now. */
/** Secret and ConfigMap go with the Service, when flows are switched off. */
async function readOwner(client: Pick<KubeClient, "request">, namespace: string): Promise<object> {
  const request: KubeRequest = { method: "GET", path: `/api/v1/namespaces/${namespace}/services/${FLOWS}` };
  const service: unknown = parseJson(requireOk(await client.request(request), request));
  const metadata = isObject(service) && isObject(service["metadata"]) ? service["metadata"] : {};
  return { apiVersion: "v1", kind: "Service", name: FLOWS, uid: metadata["uid"] };
}

async function applySecret(
  { client, namespace, isLeading }: FlowTlsOptions,
  material: FlowTls,
  owner: object,
): Promise<boolean> {
  if (!isLeading()) return false;
  await apply(client, secretPath(namespace), {
    ...{
      apiVersion: "v1",
      kind: "Secret",
      type: "Opaque",
      metadata: { name: FLOWS, namespace, ownerReferences: [owner] },
    },
    data: {
      [KEYS.authorities]: toBase64(material.authorities),
      [KEYS.authorityKey]: toBase64(material.authority.key),
      [KEYS.certificate]: toBase64(material.server.certificate),
      [KEYS.key]: toBase64(material.server.key),
    },
  });
  return true;
}

async function publish({ client, namespace }: FlowTlsOptions, authorities: string, owner: object): Promise<void> {
  await apply(client, `/api/v1/namespaces/${namespace}/configmaps/${FLOWS}`, {
    ...{ apiVersion: "v1", kind: "ConfigMap", metadata: { name: FLOWS, namespace, ownerReferences: [owner] } },
    data: { [FLOWS_AUTHORITY_KEY]: authorities },
  });
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${FLOWS_API_SERVICE}`;
  const bundle = toBase64(authorities);
  const request: KubeRequest = { method: "GET", path };
  const service: unknown = parseJson(requireOk(await client.request(request), request));
  const spec = isObject(service) && isObject(service["spec"]) ? service["spec"] : {};
  if (spec["caBundle"] === bundle) return;
  const patch: KubeRequest = {
    ...{ method: "PATCH", path, contentType: "application/merge-patch+json", attempt: "retry" },
    body: JSON.stringify({ spec: { caBundle: bundle } }),
  };
  requireOk(await client.request(patch), patch);
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
