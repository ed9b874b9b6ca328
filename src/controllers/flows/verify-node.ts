/**
 * Which node a link belongs to: as the API server says of the token of its agent. A token counts if it is meant for links
 * (its audience), belongs to the agent's account, and is bound to a Node, or to a pod that runs on one.
 */
import { identity } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { isObject, textsIn } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { FLOWS_AUDIENCE } from "../../release/workloads/names.ts";

export type VerifiedNode =
  | { readonly kind: "node"; readonly node: string }
  /** Without the token. */
  | { readonly kind: "refused"; readonly why: string };

const NODE_NAME = "authentication.kubernetes.io/node-name";

/** `namespaces`: those of the agents' accounts. */
export async function verifyNode(
  client: Pick<KubeClient, "request">,
  token: string,
  namespaces: readonly string[],
): Promise<VerifiedNode> {
  const request: KubeRequest = {
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: JSON.stringify({
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenReview",
      spec: { token, audiences: [FLOWS_AUDIENCE] },
    }),
    attempt: "retry",
  };
  const review: unknown = parseJson(requireOk(await client.request(request), request));
  return readReview(isObject(review) ? review["status"] : undefined, namespaces);
}

/** Pure. */
export function readReview(status: unknown, namespaces: readonly string[]): VerifiedNode {
  const { authenticated, audiences, user } = isObject(status) ? status : {};
  const { username, extra } = isObject(user) ? user : {};
  if (authenticated !== true) return refused("the token is not valid, or not meant for the API of flows");
  // A server that knows no audiences names none.
  if (!textsIn(audiences).includes(FLOWS_AUDIENCE)) return refused("the token is not meant for the API of flows");
  const accounts = namespaces.map((namespace) => `system:serviceaccount:${namespace}:${identity.nodeAgent}`);
  if (typeof username !== "string" || !accounts.includes(username))
    return refused(`the token belongs to ${quoted(username)}, which is not the account of the node agents`);
  const [node] = textsIn(isObject(extra) ? extra[NODE_NAME] : undefined);
  if (node !== undefined) return { kind: "node", node };
  return refused("the token is not bound to a Node; Kubernetes binds tokens to Nodes from release 1.31 on");
}

function refused(why: string): VerifiedNode {
  return { kind: "refused", why };
}
