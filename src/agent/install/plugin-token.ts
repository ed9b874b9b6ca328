/** Requests a token for the account of the plugin, which is valid for a day and no longer. */
import { PluginError } from "../../errors.ts";
import type { KubeClient } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";

export interface PluginToken {
  readonly token: string;
  /** Milliseconds since 1970, as the server says: it may shorten the time that was asked for. */
  readonly expires: number;
}

const VALID_SECONDS = 24 * 60 * 60;

export async function requestPluginToken(
  client: Pick<KubeClient, "request">,
  account: { readonly namespace: string; readonly name: string },
  signal?: AbortSignal,
): Promise<PluginToken> {
  const { namespace, name } = account;
  const request = {
    method: "POST" as const,
    path: `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`,
    body: JSON.stringify({
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      spec: { expirationSeconds: VALID_SECONDS },
    }),
    // A second token does no harm.
    attempt: "retry" as const,
    ...(signal === undefined ? {} : { signal }),
  };
  const response: unknown = parseJson(requireOk(await client.request(request), request));
  const status = isObject(response) && isObject(response["status"]) ? response["status"] : {};
  const { token, expirationTimestamp } = status;
  const expires = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : Number.NaN;
  if (typeof token === "string" && token !== "" && !Number.isNaN(expires)) return { token, expires };
  throw new PluginError(
    "api-unavailable",
    `Cannot get a token for the account "${name}" in namespace "${namespace}": the API returned none`,
  );
}
