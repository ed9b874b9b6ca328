import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import type { KubeRequest } from "../../kube/api.ts";
import { namesIn } from "../../tls/x509.ts";
import { keepCertificate, renewed } from "./kept-certificate.ts";

const DAY = 24 * 60 * 60 * 1_000;
const NAME = "flows.example.svc";
const WANTED = { authority: "an authority", names: [NAME] } as const;
const START = new Date("2026-01-01T00:00:00Z");

function after(days: number): Date {
  return new Date(START.getTime() + days * DAY);
}

function certificatesIn(text: string): number {
  return text.split("BEGIN CERTIFICATE").length - 1;
}

describe("renewed()", () => {
  const first = renewed(undefined, WANTED, START);

  test("changes nothing while enough time is left", () => {
    expect(renewed(first, WANTED, after(200))).toBe(first);
  });

  test("renews the certificate long before its end, and keeps the authority", () => {
    const next = renewed(first, WANTED, after(250));

    expect(next.server.certificate).not.toBe(first.server.certificate);
    expect(next.authorities).toBe(first.authorities);
    const { validTo } = new X509Certificate(next.server.certificate);
    expect(Date.parse(validTo)).toBe(after(250 + 365).getTime());
  });

  test("makes a certificate for another name", () => {
    const other = renewed(first, { ...WANTED, names: ["other.example.svc"] }, START);

    expect(new X509Certificate(other.server.certificate).checkHost("other.example.svc")).toBeDefined();
    expect(other.authorities).toBe(first.authorities);
  });

  test("makes another certificate for one more name, and for one less", () => {
    const more = renewed(first, { ...WANTED, names: [NAME, "10.0.0.1"] }, START);
    expect(namesIn(more.server.certificate)).toEqual([NAME, "10.0.0.1"]);
    expect(renewed(more, { ...WANTED, names: ["10.0.0.1", NAME] }, START)).toBe(more);
    expect(namesIn(renewed(more, WANTED, START).server.certificate)).toEqual([NAME]);
  });

  test("replaces the authority while the earlier one counts, and trusts both until that has ended", () => {
    const late = after(2_500);
    const both = renewed(first, WANTED, late);

    expect(certificatesIn(both.authorities)).toBe(2);
    expect(both.authorities).toContain(first.authority.certificate.trim());
    expect(both.authorities.startsWith(both.authority.certificate)).toBe(true);
    const server = new X509Certificate(both.server.certificate);
    expect(server.verify(new X509Certificate(both.authority.certificate).publicKey)).toBe(true);
    expect(certificatesIn(renewed(both, WANTED, after(3_700)).authorities)).toBe(1);
  });
});

describe("keepCertificate()", () => {
  const SERVICE = "/api/v1/namespaces/here/services/web";
  const SECRET = "/api/v1/namespaces/here/secrets/web";
  const MAP = "/api/v1/namespaces/here/configmaps/web";

  /** Stores what is applied, as far as it is read here. */
  function imitatedApi() {
    const objects = new Map<string, string>([
      [SERVICE, JSON.stringify({ metadata: { uid: "u1" }, spec: { host: NAME } })],
    ]);
    const writes: string[] = [];
    const request = async ({ method, path, body }: KubeRequest) => {
      if (method === "PATCH") {
        writes.push(path);
        objects.set(path, String(body));
      }
      const text = objects.get(path);
      return { status: text === undefined ? 404 : 200, text: text ?? "{}", headers: new Headers() };
    };
    return { objects, writes, client: { request } };
  }

  const certificate = {
    ...{ name: "web", authority: "an authority" },
    namesOf: ({ spec }: Readonly<Record<string, unknown>>): readonly [string] => [Object(spec).host],
  };
  const options = { namespace: "here", now: () => START, isLeading: () => true };

  test("writes the Secret once, and the authority for everybody, both deleted with the Service", async () => {
    const { objects, writes, client } = imitatedApi();
    const first = await keepCertificate({ ...options, client }, certificate);
    const second = await keepCertificate({ ...options, client }, certificate);

    expect(second).toEqual(first);
    expect(writes).toEqual([SECRET, MAP, MAP]);
    const owner = { apiVersion: "v1", kind: "Service", name: "web", uid: "u1" };
    for (const path of [SECRET, MAP])
      expect(JSON.parse(objects.get(path) ?? "")).toMatchObject({ metadata: { ownerReferences: [owner] } });
    expect(JSON.parse(objects.get(MAP) ?? "").data).toEqual({ "ca.crt": first?.authorities });
    expect(objects.get(MAP)).not.toContain("PRIVATE KEY");
  });

  test("follows the names of the Service", async () => {
    const { objects, client } = imitatedApi();
    await keepCertificate({ ...options, client }, certificate);
    objects.set(SERVICE, JSON.stringify({ metadata: { uid: "u1" }, spec: { host: "192.0.2.7" } }));

    const kept = await keepCertificate({ ...options, client }, certificate);
    expect(namesIn(kept?.server.certificate ?? "")).toEqual(["192.0.2.7"]);
  });

  test("reads what the leading replica wrote, and writes nothing itself", async () => {
    const { writes, client } = imitatedApi();
    const standby = { ...options, client, isLeading: () => false };
    expect(await keepCertificate(standby, certificate)).toBeUndefined();
    expect(writes).toEqual([]);

    const kept = await keepCertificate({ ...options, client }, certificate);
    expect(await keepCertificate(standby, certificate)).toEqual(kept);
  });

  test("replaces a Secret that somebody has changed", async () => {
    const { objects, client } = imitatedApi();
    const first = await keepCertificate({ ...options, client }, certificate);
    const secret = JSON.parse(objects.get(SECRET) ?? "");
    objects.set(SECRET, JSON.stringify({ ...secret, data: { ...secret.data, "tls.key": "" } }));

    const second = await keepCertificate({ ...options, client }, certificate);
    expect(second?.server.certificate).not.toBe(first?.server.certificate);
  });
});
