/** Secrets with a mark to search for, and every place in the network config for them. */
import { networkConfigFields } from "../../src/config/schema.ts";

export const MARK = "S3CRET";

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

const FIELDS = Object.entries(networkConfigFields()).flatMap(([name, field]) => [
  name,
  ...(field.kind === "section" ? Object.keys(field.fields).map((inner) => `${name}.${inner}`) : []),
]);

export const PLACES_FOR_SECRETS = [...FIELDS, "unknown_key", "ipam.unknown", "policy.k8s_auth_token"];

/** Each secret as a string, in a list, as a key, and inside an object. */
export const VALUES_WITH_SECRETS: readonly unknown[] = SECRETS.flatMap((secret) => [
  secret,
  [secret],
  { [secret]: secret },
  { inner: secret },
]);
