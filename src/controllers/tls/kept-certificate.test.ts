import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { namesIn } from "../../tls/x509.ts";
import { renewed } from "./kept-certificate.ts";

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
