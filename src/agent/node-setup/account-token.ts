/** Requests a token for the account of the plugin or the agent, which is valid only as long as the Node exists. */
import { PluginError } from "../../errors.ts";
import type { KubeClient, KubeResponse } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

export interface AccountToken {
  readonly token: string;
  /** Milliseconds since 1970, as the server says: it may shorten the time that was asked for. */
  readonly expires: number;
}

const DAY_SECONDS = 24 * 60 * 60;

function isUnknownBinding({ status, text }: KubeResponse): boolean {
  return status === 400 && text.includes("cannot bind token");
}

export interface TokenAccount {
  readonly namespace: string;
  readonly name: string;
  /** The Node that the token is bound to: the admission policies of node accounts need it. */
  readonly node: string;
  /** By default a day. */
  readonly validSeconds?: number;
  /** Whom it is for; by default the API server. */
  readonly audience?: string;
}

export async function requestAccountToken(
  client: Pick<KubeClient, "request">,
  account: TokenAccount,
  signal?: AbortSignal,
): Promise<AccountToken> {
  const { namespace, name, node, validSeconds = DAY_SECONDS, audience } = account;
  const audiences = audience === undefined ? {} : { audiences: [audience] };
  const requestWith = (spec: object) => ({
    method: "POST" as const,
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: JSON.stringify({
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: validSeconds, ...audiences, ...spec },
    }),
    // A second token does no harm.
    attempt: "retry" as const,
    ...(signal === undefined ? {} : { signal }),
  });
  const bound = requestWith({ boundObjectRef: { apiVersion: "v1", kind: "Node", name: node } });
  const first = await client.request(bound);
  // Before Kubernetes 1.31 tokens cannot be bound to a Node.
  const request = isUnknownBinding(first) ? requestWith({}) : bound;
  const answer = request === bound ? first : await client.request(request);
  const response: unknown = parseJson(requireOk(answer, request));
  const status = isObject(response) && isObject(response["status"]) ? response["status"] : {};
  const { token, expirationTimestamp } = status;
  const expires = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : Number.NaN;
  if (typeof token === "string" && token !== "" && !Number.isNaN(expires)) return { token, expires };
  throw new PluginError(
    "api-unavailable",
    `Cannot get a token for the account "${name}" in namespace "${namespace}": the API returned none`,
  );
}

/** `undefined` if there is no such Node. Read from the server's cache: every node asks each minute. */
export async function nodeUid(
  client: Pick<KubeClient, "request">,
  node: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  const request = { method: "GET" as const, path: `/api/v1/nodes/${node}`, query: { resourceVersion: "0" }, signal };
  const response = await client.request(request);
  if (response.status === 404) return undefined;
  const found: unknown = parseJson(requireOk(response, request));
  const metadata = isObject(found) && isObject(found["metadata"]) ? found["metadata"] : {};
  return typeof metadata["uid"] === "string" ? metadata["uid"] : undefined;
}
