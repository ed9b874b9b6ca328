/** No secret survives: in free text, in a value, or in anything the decoder says of a config. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MINIMAL, withField } from "../../test/support/network-config.ts";
import { unreadableFiles } from "./config-files.ts";
import { configInvalid, decodeNetworkConfig, unknownKeyText } from "./decode.ts";
import { redact, redactAll, redactUrl } from "./redact.ts";
import { wireSchema } from "./schema.ts";
import { entriesOf, objectWithin } from "./schema-shape.ts";

const MARK = "S3CRET";

const SECRETS = [
  `http://user:${MARK}@host:2379`,
  `http://a:1,https://user:${MARK}@host:2379`,
  `http://user:x,${MARK}/y@z@host:2379`,
  `user:${MARK}@host:2379`,
  `https://user:with space ${MARK}@host`,
  `-----BEGIN RSA PRIVATE KEY-----\n${MARK}\n-----END RSA PRIVATE KEY-----`,
  `-----BEGIN CERTIFICATE-----\n${MARK}`,
  `Bearer ${MARK}`,
  `https://host/path?token=${MARK}&x=1`,
  `password=${MARK}`,
  `eyJhbGciOi.${MARK}.sig`,
];

describe("redact()", () => {
  test.each([
    ["Cannot reach http://u:p@a:1, tried 3 times", "Cannot reach http://***@a:1, tried 3 times"],
    ['"https://u:p@a,https://b" failed', '"https://***@a,https://b" failed'],
    ["Authorization: Bearer abc", "Authorization: Bearer ***"],
    ["nothing to hide at http://a:1/path", "nothing to hide at http://a:1/path"],
  ])("%s", (text, hidden) => {
    expect(redact(text)).toBe(hidden);
  });

  test("hides any user and password in a URL", () => {
    const word = fc.stringMatching(/^[A-Za-z0-9%:/.,!-]{1,20}$/);
    fc.assert(
      fc.property(word, (noise) => {
        const url = `https://user:${noise}${MARK}${noise}@host:2379`;

        expect(redact(`Cannot reach "${url}": refused`)).not.toContain(MARK);
        expect(redactUrl(url)).toBe("https://***@host:2379");
      }),
    );
  });
});

describe("the network config", () => {
  const fields = Object.entries(entriesOf(wireSchema())).flatMap(([name, field]) => {
    const object = objectWithin(field);
    return [name, ...(object === undefined ? [] : Object.keys(entriesOf(object)).map((inner) => `${name}.${inner}`))];
  });

  test.each([...fields, "unknown_key", "ipam.unknown", "policy.k8s_auth_token"])("keeps a secret in %s", (field) => {
    for (const secret of SECRETS) {
      for (const value of [secret, [secret], { [secret]: secret }, { inner: secret }]) {
        const config = withField(field, value);
        expect(everythingSaidOf(config)).not.toContain(MARK);
      }
    }
  });

  function everythingSaidOf(raw: unknown): string {
    const decoded = decodeNetworkConfig(raw);
    const said = [...decoded.warnings.map(({ message }) => message), ...decoded.unknownKeys.map(unknownKeyText)];
    if (!decoded.ok) {
      const failure = configInvalid(decoded.problems);
      return [...said, failure.message, failure.details, String(failure.stack)].join("\n");
    }
    const files = unreadableFiles(decoded.config).map(({ message }) => message);
    return [...said, ...files, JSON.stringify(redactAll(decoded.config))].join("\n");
  }

  test("is searched where secrets would show: an ordinary value does", () => {
    expect(everythingSaidOf({ ...MINIMAL, log_level: MARK })).toContain(MARK);
  });
});
