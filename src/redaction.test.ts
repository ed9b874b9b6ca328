import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isSecretName, redact, redactField } from "./redaction.ts";

const SECRET = "s3cr3tMARK9f2";
const PEM = `-----BEGIN RSA PRIVATE KEY-----\n${SECRET}\nabc\n-----END RSA PRIVATE KEY-----`;
const TOKEN = `eyJhbGciOiJSUzI1NiJ9.${SECRET}.${SECRET}`;

describe("redact()", () => {
  test.each([
    ["user and password in a URL", `cannot reach https://root:${SECRET}@10.0.0.1:2379/v3`],
    ["a token as the user of a URL", `GET https://${SECRET}@host/`],
    ["a password that holds an at sign", `https://root:a@${SECRET}@host:1`],
    ["a password that holds a slash", `https://root:a/${SECRET}@host:1/x`],
    ["the second URL of a list", `https://a:1,https://root:${SECRET}@b:2`],
    ["user and password without a scheme", `root:${SECRET}@127.0.0.1:2379`],
    ["a bearer token", `Authorization: Bearer ${SECRET}`],
    ["basic credentials", `sent Basic ${SECRET}==`],
    ["a JSON web token", `the server refused ${TOKEN}`],
    ["a PEM block", `key ${PEM} end`],
    ["a PEM block with escaped line ends", `key ${PEM.replaceAll("\n", "\\n")} end`],
    ["a PEM block cut short", `key -----BEGIN PRIVATE KEY-----\n${SECRET}`],
    ["a PEM block in base64", `data: ${btoa(PEM)}`],
    ["a JSON member", `{"token":"${SECRET}"}`],
    ["a JSON member inside JSON text", JSON.stringify(`{"client-key-data": "${SECRET} more"}`)],
    ["a query parameter", `https://host/?access_token=${SECRET}&x=1`],
    ["an assignment", `API_KEY=${SECRET}`],
    ["a YAML line", `password: ${SECRET}`],
    ["a YAML line with a token", `token: ${SECRET}`],
    ["the value of a key that ends like a path", `"example.org/token": "${SECRET}"`],
    ["the value of a key that is a path", `"/etc/passwd": ${SECRET} more`],
    ["the quoted value of a key that is a path", `{"/run/token": "${SECRET}"}`],
    ["an assignment after a path", `/run/token=${SECRET}`],
    ["what follows a path without a space", `/run/token:${SECRET}`],
    ["a password in a URL that ends like a path", `https://root:${SECRET}@h/token: it failed`],
  ])("hides %s", (_, text) => {
    expect(redact(text)).not.toContain(SECRET);
    expect(redact(text)).toContain("[redacted]");
  });

  test.each([
    "Cannot reach https://10.0.0.1:2379/v3/kv/range: connection refused",
    "Cannot read token: permission denied",
    'Cannot use pool "blue": no such pool',
    "token_file=/var/run/secrets/token",
    "the link 3: eth0@if4 is up",
    'Cannot open datastore "/etc/passwd": it is not a SQLite database',
    'Cannot open "/tmp/copy/passwd": it is not a SQLite database',
    'Cannot read "/run/secrets/token": no such file or directory',
    "Cannot read /run/secrets/.token: it is a directory",
    'Cannot read "../my-secret": ENOENT',
    'open "/run/secrets/token": EACCES: permission denied',
    "http://host:80/path@version",
    "2026-11-15 03:22:14.123 [INFO][12] ipam: assigned 10.0.0.1/26",
    "image busybox@sha256:0123",
  ])("leaves ordinary text alone: %s", (text) => {
    expect(redact(text)).toBe(text);
  });

  test("keeps what surrounds the secret", () => {
    expect(redact(`GET https://root:${SECRET}@host:1/x failed`)).toBe("GET https://[redacted]@host:1/x failed");
    expect(redact(`{"token":"${SECRET}","a":1}`)).toBe('{"token":"[redacted]","a":1}');
  });

  test.each([
    ["an upper-case key that begins like the code of a system error", '{"/db/password": EXAMPLEKEY12}'],
    ["the same, of a token", '"/secret/token": EYK3Q7PZ9A'],
    ["the same, in our own message", 'Cannot use "/secret/token": EYK3Q7PZ9A'],
    ["a password of plain words", '"/a/password": correct horse'],
    ["a password of plain words in our own message", 'Cannot use "/a/password": correct horse'],
    ["a password like the code of a system error", "/a/passphrase: EACCES"],
    ["a password of plain words under a short name", '{"/db/passwd": correct horse}'],
    ["a token of plain words", '{"/a/token": correct horse}'],
  ])("hides the value of a key that looks like the path of a file: %s", (_, text) => {
    expect(redact(text)).toContain("[redacted]");
    expect(redact(text)).not.toMatch(/EXAMPLEKEY12|EYK3Q7PZ9A|correct|EACCES/);
  });

  test.each(["password: hunter", '"password": correct horse', "my/password: correct horse", '"/a/password": hunter'])(
    "hides a password that is a plain word: %s",
    (text) => {
      expect(redact(text)).toContain("[redacted]");
      expect(redact(text)).not.toMatch(/hunter|correct/);
    },
  );

  test("changes nothing when applied twice", () => {
    const pieces = fc.constantFrom(
      "://",
      "@",
      ":",
      "token",
      "=",
      "Bearer ",
      PEM,
      TOKEN,
      '"',
      " ",
      "a",
      "/",
      "password",
    );
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
        const once = redact(parts.join(""));
        expect(redact(once)).toBe(once);
      }),
    );
  });

  test.each([
    "a",
    "a:",
    "://",
    "token",
    "eyJ",
    "-----BEGIN A-----",
    "a@",
    "://a:b/",
    " token",
    "/token: a ",
    '"/token": ',
  ])(
    "takes time in proportion to the length: %s again and again",
    (piece) => {
      const long = piece.repeat(Math.ceil(200_000 / piece.length));

      expect(redact(long).length).toBeGreaterThan(0);
    },
    5_000,
  );
});

describe("redactField()", () => {
  test("hides the whole value if the name says that it is secret", () => {
    expect(redactField("password", "x y z")).toBe("[redacted]");
  });

  test("hides only the secret part of any other value", () => {
    expect(redactField("etcd_endpoints", `http://a:${SECRET}@h:1`)).toBe("http://[redacted]@h:1");
  });
});

describe("isSecretName()", () => {
  test.each(["password", "apiToken", "client-key-data", "certificate-authority-data", "K8S_TOKEN", "privateKey"])(
    "says yes to %s",
    (name) => expect(isSecretName(name)).toBe(true),
  );

  test.each(["etcd_key_file", "tokenFile", "secretName", "key", "name", "serviceaccount_token_path"])(
    "says no to %s",
    (name) => expect(isSecretName(name)).toBe(false),
  );
});
