/** Secrets are removed from values, and from everything that the decoder reports about a config. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MARK, PLACES_FOR_SECRETS, VALUES_WITH_SECRETS } from "../../test/support/marked-secrets.ts";
import { MINIMAL, withField } from "../../test/support/network-config.ts";
import { unreadableFiles } from "./config-files.ts";
import { configInvalid, decodeNetworkConfig } from "./decode.ts";
import { redactAll, redactValue } from "./redact.ts";
import { unknownKeyText } from "./unknown-key.ts";

describe("redactValue()", () => {
  test.each([
    ["https://u:p@a,https://b", "https://[redacted]@a,https://b"],
    ["http://a:1/path", "http://a:1/path"],
    ['http://u:with "quotes" and space@a', "http://[redacted]@a"],
    ["/var/log/user@host/cni.log", "/var/log/user@host/cni.log"],
    ["/u:p@host", "[redacted]@host"],
    ["/u p@host", "[redacted]@host"],
    ["//TOKEN@etcd.example/", "[redacted]@etcd.example/"],
    ["/a//TOKEN@etcd.example/", "[redacted]@etcd.example/"],
    ["/s3cr3t@etcd.example", "[redacted]@etcd.example"],
  ])("%s", (value, hidden) => {
    expect(redactValue(value)).toBe(hidden);
  });

  test("hides any user and password in a URL", () => {
    const word = fc.stringMatching(/^[A-Za-z0-9%:/.,! "'-]{1,20}$/);
    fc.assert(
      fc.property(word, (noise) => {
        expect(redactValue(`https://user:${noise}${MARK}${noise}@host:2379`)).toBe("https://[redacted]@host:2379");
      }),
    );
  });
});

describe("redactAll()", () => {
  test("hides a secret, and does not invent one where there is none", () => {
    expect(
      redactAll({ token: "t", password: undefined, secret: null, passphrase: "", credential: { user: "u" } }),
    ).toEqual({
      token: "[redacted]",
      password: undefined,
      secret: null,
      passphrase: "",
      credential: "[redacted]",
    });
  });
});

describe("the network config", () => {
  test.each(PLACES_FOR_SECRETS)("does not reveal a secret in %s", async (field) => {
    for (const value of VALUES_WITH_SECRETS) {
      expect(await everythingSaidOf(withField(field, value))).not.toContain(MARK);
    }
  });

  async function everythingSaidOf(raw: unknown): Promise<string> {
    const decoded = decodeNetworkConfig(raw);
    const said = [...decoded.warnings.map(({ message }) => message), ...decoded.unknownKeys.map(unknownKeyText)];
    const files = (await unreadableFiles(decoded.files)).map(({ message }) => message);
    if (decoded.ok) return [...said, ...files, JSON.stringify(redactAll(decoded.config))].join("\n");
    const failure = configInvalid(decoded.problems);
    return [...said, ...files, failure.message, failure.details, String(failure.stack)].join("\n");
  }

  test("is searched in the right places: an ordinary value is found", async () => {
    expect(await everythingSaidOf({ ...MINIMAL, log_level: MARK })).toContain(MARK);
  });
});
