/** No secret survives: in free text, in a value, or in anything the decoder says of a config. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { MINIMAL, withField } from "../../test/support/network-config.ts";
import { unreadableFiles } from "./config-files.ts";
import { configInvalid, decodeNetworkConfig } from "./decode.ts";
import { Section } from "./field.ts";
import { redactAll, redactValue } from "./redact.ts";
import { networkConfigFields } from "./schema.ts";
import { unknownKeyText } from "./unknown-key.ts";

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

describe("redactValue()", () => {
  test.each([
    ["https://u:p@a,https://b", "https://[redacted]@a,https://b"],
    ["http://a:1/path", "http://a:1/path"],
    ['http://u:with "quotes" and space@a', "http://[redacted]@a"],
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

describe("the network config", () => {
  const fields = Object.entries(networkConfigFields()).flatMap(([name, field]) => {
    return [name, ...(field instanceof Section ? Object.keys(field.fields).map((inner) => `${name}.${inner}`) : [])];
  });

  test.each([...fields, "unknown_key", "ipam.unknown", "policy.k8s_auth_token"])(
    "keeps a secret in %s",
    async (field) => {
      for (const secret of SECRETS) {
        for (const value of [secret, [secret], { [secret]: secret }, { inner: secret }]) {
          const config = withField(field, value);
          expect(await everythingSaidOf(config)).not.toContain(MARK);
        }
      }
    },
  );

  async function everythingSaidOf(raw: unknown): Promise<string> {
    const decoded = decodeNetworkConfig(raw);
    const said = [...decoded.warnings.map(({ message }) => message), ...decoded.unknownKeys.map(unknownKeyText)];
    if (!decoded.ok) {
      const failure = configInvalid(decoded.problems);
      return [...said, failure.message, failure.details, String(failure.stack)].join("\n");
    }
    const files = (await unreadableFiles(decoded.config)).map(({ message }) => message);
    return [...said, ...files, JSON.stringify(redactAll(decoded.config))].join("\n");
  }

  test("is searched where secrets would show: an ordinary value does", async () => {
    expect(await everythingSaidOf({ ...MINIMAL, log_level: MARK })).toContain(MARK);
  });
});
