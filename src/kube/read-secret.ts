/** Reads one value of a Secret. The value never enters an error. */
import { PluginError } from "../errors.ts";
import { parseJson } from "../parse-json.ts";
import { quoted } from "../quote.ts";
import type { KubeClient } from "./api.ts";
import { requireOk } from "./require-ok.ts";

interface SecretKey {
  readonly namespace: string;
  readonly name: string;
  readonly key: string;
}

export async function readSecret(
  client: Pick<KubeClient, "request">,
  { namespace, name, key }: SecretKey,
): Promise<string> {
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/secrets/${encodeURIComponent(name)}`;
  const request = { method: "GET", path } as const;
  const value = encodedValue(parseJson(requireOk(await client.request(request), request)), key);
  if (value !== undefined) return Buffer.from(value, "base64").toString("utf8");
  const secret = `Secret ${quoted(name)} of namespace ${quoted(namespace)}`;
  throw new PluginError("resource-missing", `${secret} has no key ${quoted(key)}`);
}

function encodedValue(secret: unknown, key: string): string | undefined {
  if (typeof secret !== "object" || secret === null || !("data" in secret)) return undefined;
  const { data } = secret;
  if (typeof data !== "object" || data === null || !Object.hasOwn(data, key)) return undefined;
  const value: unknown = (data as Readonly<Record<string, unknown>>)[key];
  return typeof value === "string" ? value : undefined;
}
