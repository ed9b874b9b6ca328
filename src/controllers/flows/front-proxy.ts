/**
 * Who asks: the API server names the caller in headers, and identifies itself by a client certificate, as
 * `kube-system/extension-apiserver-authentication` says (kube-apiserver's flags `--requestheader-…`). Whoever has no such
 * certificate is nobody, whatever the headers say. Pure, except for reading the ConfigMap.
 */
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject, textsIn } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

export interface FrontProxy {
  /** PEM: who signs the certificates of API servers. */
  readonly authorities: string;
  /** Common names that count; empty: every one that an authority signed. */
  readonly allowedNames: readonly string[];
  /** In lower case. */
  readonly userHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraPrefixes: readonly string[];
}

export interface Caller {
  readonly user: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** What is known of the connection; `commonName` of a certificate that may not be verified. */
export interface PeerCertificate {
  /** Signed by one of the authorities, and valid now. */
  readonly isVerified: boolean;
  readonly commonName: string | undefined;
}

const FRONT_PROXY_PATH = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";

/** `undefined`: the API server has no front proxy certificates, so nobody can be identified. */
export async function readFrontProxy(client: Pick<KubeClient, "request">): Promise<FrontProxy | undefined> {
  const request: KubeRequest = { method: "GET", path: FRONT_PROXY_PATH };
  const response = await client.request(request);
  if (response.status === 404) return undefined;
  const found: unknown = parseJson(requireOk(response, request));
  return frontProxyOf(isObject(found) ? found["data"] : undefined);
}

export function frontProxyOf(data: unknown): FrontProxy | undefined {
  const members = isObject(data) ? data : {};
  const authorities = members["requestheader-client-ca-file"];
  if (typeof authorities !== "string" || authorities.trim() === "") return undefined;
  const list = (key: string) => {
    const text = members[key];
    return typeof text === "string" && text !== "" ? textsIn(parseJson(text)) : [];
  };
  const lowered = (key: string) => list(key).map((name) => name.toLowerCase());
  return {
    authorities,
    allowedNames: list("requestheader-allowed-names"),
    userHeaders: lowered("requestheader-username-headers"),
    groupHeaders: lowered("requestheader-group-headers"),
    extraPrefixes: lowered("requestheader-extra-headers-prefix"),
  };
}

/** `headers`: names and values in turn, as they came: a header with several values is there several times. */
export function callerOf(
  headers: readonly string[],
  { isVerified, commonName }: PeerCertificate,
  proxy: FrontProxy,
): Caller | undefined {
  const { allowedNames, userHeaders, groupHeaders, extraPrefixes } = proxy;
  if (!isVerified || commonName === undefined) return undefined;
  if (allowedNames.length > 0 && !allowedNames.includes(commonName)) return undefined;
  const pairs = Array.from({ length: headers.length / 2 }, (_, index) => {
    return { name: (headers[2 * index] ?? "").toLowerCase(), value: headers[2 * index + 1] ?? "" };
  });
  const user = userHeaders.flatMap((header) => pairs.filter(({ name }) => name === header)).find(({ value }) => value);
  if (user === undefined) return undefined;
  const extra: Record<string, string[]> = Object.create(null);
  for (const { name, value } of pairs) {
    const prefix = extraPrefixes.find((each) => name.startsWith(each));
    if (prefix === undefined) continue;
    const key = unescaped(name.slice(prefix.length));
    extra[key] = [...(extra[key] ?? []), value];
  }
  return {
    user: user.value,
    groups: groupHeaders.flatMap((header) => pairs.filter(({ name }) => name === header).map(({ value }) => value)),
    extra: { ...extra },
  };
}

/** Keys are escaped as in URLs. */
function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}
