import { describe, expect, test } from "bun:test";
import { X509Certificate } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../test/support/temporary-directory.ts";
import { makeAuthority, makeServerCertificate, namesIn } from "./x509.ts";

const DAY = 24 * 60 * 60 * 1_000;
const VALID = { from: new Date(Date.now() - DAY), until: new Date(Date.now() + 30 * DAY) };
const NAME = "flows.example.svc";

function openssl(args: readonly string[]): { readonly ok: boolean; readonly text: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["openssl", ...args]);
  return { ok: exitCode === 0, text: `${stdout}${stderr}` };
}

describe("makeServerCertificate()", () => {
  test("makes what openssl verifies, strictly, for this name and no other", () => {
    using stack = new DisposableStack();
    const directory = temporaryDirectory("x509");
    stack.defer(() => directory.remove());
    const authority = makeAuthority("an authority", VALID);
    const server = makeServerCertificate(authority, { names: [NAME, `${NAME}.cluster.local`], validity: VALID });
    const [ca, cert] = [join(directory.path, "ca.crt"), join(directory.path, "tls.crt")];
    writeFileSync(ca, authority.certificate);
    writeFileSync(cert, server.certificate);
    const verify = (name: string) =>
      openssl(["verify", "-x509_strict", "-purpose", "sslserver", "-verify_hostname", name, "-CAfile", ca, cert]);

    expect(verify(NAME)).toMatchObject({ ok: true });
    expect(verify(`${NAME}.cluster.local`)).toMatchObject({ ok: true });
    expect(verify("other.example.svc")).toMatchObject({ ok: false });
    const { text } = openssl(["x509", "-in", cert, "-noout", "-text"]);
    expect(text).toContain("CA:FALSE");
    expect(text).toContain("TLS Web Server Authentication");
    expect(text).toContain("ecdsa-with-SHA256");
  });

  test("is not accepted for another authority of the same name", () => {
    using stack = new DisposableStack();
    const directory = temporaryDirectory("x509");
    stack.defer(() => directory.remove());
    const [own, other] = [makeAuthority("same name", VALID), makeAuthority("same name", VALID)];
    const server = makeServerCertificate(own, { names: [NAME], validity: VALID });
    const [ca, cert] = [join(directory.path, "ca.crt"), join(directory.path, "tls.crt")];
    writeFileSync(ca, other.certificate);
    writeFileSync(cert, server.certificate);

    expect(openssl(["verify", "-CAfile", ca, cert])).toMatchObject({ ok: false });
  });

  test("is valid as long as asked for, also beyond 2050, and each has a serial number of its own", () => {
    const authority = makeAuthority("an authority", VALID);
    const validity = { from: new Date("2026-01-02T03:04:05Z"), until: new Date("2055-06-07T08:09:10Z") };
    const read = () => new X509Certificate(makeServerCertificate(authority, { names: [NAME], validity }).certificate);
    const certificate = read();

    expect(new Date(certificate.validFrom).toISOString()).toBe("2026-01-02T03:04:05.000Z");
    expect(new Date(certificate.validTo).toISOString()).toBe("2055-06-07T08:09:10.000Z");
    expect(certificate.serialNumber).not.toBe(read().serialNumber);
  });

  test("is for addresses too, which openssl verifies", () => {
    using stack = new DisposableStack();
    const directory = temporaryDirectory("x509");
    stack.defer(() => directory.remove());
    const authority = makeAuthority("an authority", VALID);
    const names = [NAME, "localhost", "10.96.0.7", "fd00::7", "::1"] as const;
    const server = makeServerCertificate(authority, { names, validity: VALID });
    const [ca, cert] = [join(directory.path, "ca.crt"), join(directory.path, "tls.crt")];
    writeFileSync(ca, authority.certificate);
    writeFileSync(cert, server.certificate);
    const verify = (address: string) =>
      openssl(["verify", "-x509_strict", "-purpose", "sslserver", "-verify_ip", address, "-CAfile", ca, cert]).ok;

    expect(["10.96.0.7", "fd00::7", "::1", "10.96.0.8", "fd00::8"].map(verify)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
    expect(namesIn(server.certificate)).toEqual([...names]);
  });
});

describe("namesIn()", () => {
  test("is empty for a certificate without names", () => {
    expect(namesIn(makeAuthority("an authority", VALID).certificate)).toEqual([]);
  });
});
