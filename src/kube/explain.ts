/**
 * Finds out why TLS or the credentials failed, after they have: which file cannot
 * be used, and which certificate or token expired when. Loaded only then.
 */
import { X509Certificate } from "node:crypto";
import { connect, createSecureContext } from "node:tls";
import type { Connection } from "./connection.ts";
import type { Credentials } from "./credentials.ts";
import { KubeFailure } from "./failure.ts";
import type { Material } from "./kubeconfig-entries.ts";

const LIMIT_MILLISECONDS = 2_000;

/** Returns the failure with a message that names the file or the date. */
export async function explainFailure(failure: KubeFailure, connection: Connection, now: Date): Promise<KubeFailure> {
  const code = codeOf(failure.cause);
  const reason =
    code === "FailedToOpenSocket"
      ? await unusableFile(connection)
      : failure.diagnosis.stage === "TLS"
        ? await untrusted(code, connection, now)
        : undefined;
  if (reason === undefined) return failure;
  const advice = code === "FailedToOpenSocket" ? UNUSABLE_ADVICE : failure.diagnosis.advice;
  const diagnosis = { ...failure.diagnosis, stage: "TLS", cure: "repair", advice } as const;
  return new KubeFailure(diagnosis, reason, failure.cause);
}

const UNUSABLE_ADVICE =
  "check that the client certificate and its key are PEM and belong together, and that the certificate authority contains complete certificates";

/** For certificates and keys that it cannot use, `fetch` only reports that it opened no socket. */
async function unusableFile({ cluster, roots, credentials }: Connection): Promise<string | undefined> {
  const { cert, key } = await credentials.current();
  const ca = await roots();
  const parts = [
    [`the certificate authority ${placeOf(cluster.certificateAuthority)}`, ca === undefined ? {} : { ca }],
    [`the ${credentials.description}`, cert === undefined || key === undefined ? {} : { cert, key }],
  ] as const;
  for (const [name, part] of parts) {
    try {
      createSecureContext(part);
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause);
      const isMismatch = message.includes("KEY_VALUES_MISMATCH");
      return `${name} cannot be used: ${isMismatch ? "the key does not belong to the certificate" : message}`;
    }
  }
  return undefined;
}

async function untrusted(code: string, { cluster, roots, server }: Connection, now: Date): Promise<string | undefined> {
  const place = `the certificate authority ${placeOf(cluster.certificateAuthority)}`;
  if (code === "CERT_HAS_EXPIRED" || code === "CERT_NOT_YET_VALID") {
    const certificates = (await roots())?.map((pem) => new X509Certificate(pem)) ?? [];
    const [invalidRoot] = certificates.flatMap((root) => invalidity(root, now) ?? []);
    if (invalidRoot !== undefined) return `${place} ${invalidRoot}`;
    const presented = await presentedCertificate(server, cluster.tlsServerName);
    const invalid = presented && invalidity(presented, now);
    return invalid && `the server's certificate ${invalid}`;
  }
  if (!/^(UNABLE_TO|SELF_SIGNED|DEPTH_ZERO|INVALID_CA)/.test(code)) return undefined;
  const trusted = cluster.certificateAuthority === undefined ? "a root that this program trusts by default" : place;
  return `the server's certificate is not signed by ${trusted} (${code})`;
}

/** Of the certificate that the server presents, nothing is trusted but its dates, for a message. Nothing is sent. */
async function presentedCertificate(
  server: string,
  serverName: string | undefined,
): Promise<X509Certificate | undefined> {
  const { hostname, port } = new URL(server);
  const { promise, resolve } = Promise.withResolvers<X509Certificate | undefined>();
  const socket = connect({
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port || 443),
    rejectUnauthorized: false,
    ...(serverName === undefined ? {} : { servername: serverName }),
  });
  const timer = setTimeout(() => resolve(undefined), LIMIT_MILLISECONDS);
  socket.once("error", () => resolve(undefined));
  socket.once("secureConnect", () => {
    const { raw } = socket.getPeerCertificate();
    resolve(raw === undefined ? undefined : new X509Certificate(raw));
  });
  try {
    return await promise;
  } finally {
    clearTimeout(timer);
    socket.destroy();
  }
}

/** The refused credentials of a 401: `client certificate "/a.crt", which expired on 2026-01-31T00:00:00.000Z`. */
export async function describeRefused({ credentials }: Connection, now: Date): Promise<string> {
  const { description } = credentials;
  const invalid = invalidityOf(await credentials.current(), now);
  return invalid === undefined ? description : `${description}, which ${invalid}`;
}

function invalidityOf({ authorization, cert }: Credentials, now: Date): string | undefined {
  const expires = authorization === undefined ? undefined : expiryOfToken(authorization);
  if (expires !== undefined && expires <= now) return `expired on ${expires.toISOString()}`;
  if (authorization !== undefined || cert === undefined) return undefined;
  try {
    return invalidity(new X509Certificate(cert), now);
  } catch {
    return "is not a certificate";
  }
}

function invalidity({ validFrom, validTo }: X509Certificate, now: Date): string | undefined {
  const [from, to] = [new Date(validFrom), new Date(validTo)];
  if (to <= now) return `expired on ${to.toISOString()}`;
  return from > now ? `is not valid before ${from.toISOString()}` : undefined;
}

/** Of a JSON web token, as those of service accounts are. Its signature does not matter for a message. */
function expiryOfToken(authorization: string): Date | undefined {
  const [, claims = ""] = authorization.split(".");
  try {
    const { exp } = JSON.parse(Buffer.from(claims, "base64url").toString());
    return typeof exp === "number" ? new Date(exp * 1_000) : undefined;
  } catch {
    return undefined;
  }
}

function placeOf(material: Material | undefined): string {
  if (material === undefined) return "of the runtime";
  return material.kind === "file" ? `"${material.path}"` : `in "${material.file}"`;
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && "code" in cause ? String(cause.code) : "";
}
