/**
 * Which node a link belongs to: as the API server says of the token of its agent. A token counts if it is meant for links
 * (its audience), belongs to the agent's account, and is bound to a Node, or to a pod that runs on one.
 */
import { createHash } from "node:crypto";
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

const REFUSED_MILLISECONDS = 60_000;
const MOST_REFUSED = 20;
const MOST_AT_ONCE = 4;
const MOST_REMEMBERED = 10_000;

/**
 * Whoever reaches the port may try tokens. A token that was refused is not asked about again for a minute, and an address from which
 * many were refused, or several are being asked about, has to wait: so it takes neither the places of nodes, nor the time of the API
 * server. What is remembered is bounded.
 */
export class TokenAttempts {
  private readonly tokens = new Map<string, Refusals>();
  private readonly addresses = new Map<string, Refusals>();
  private readonly asking = new Map<string, number>();

  constructor(
    private readonly verify: (token: string) => Promise<VerifiedNode>,
    private readonly elapsed: () => number,
  ) {}

  /** `undefined`: later. Throws if the API server does not say. */
  async verifyFrom(address: string, token: string): Promise<VerifiedNode | undefined> {
    const hash = createHash("sha256").update(token).digest("base64");
    const known = this.recent(this.tokens, hash);
    if (known !== undefined) return refused(known.why);
    const atOnce = this.asking.get(address) ?? 0;
    if (atOnce >= MOST_AT_ONCE || (this.recent(this.addresses, address)?.count ?? 0) >= MOST_REFUSED) return undefined;
    this.asking.set(address, atOnce + 1);
    try {
      const verified = await this.verify(token);
      if (verified.kind === "refused") {
        this.note(this.tokens, hash, verified.why);
        this.note(this.addresses, address, verified.why);
      }
      return verified;
    } finally {
      const left = (this.asking.get(address) ?? 1) - 1;
      if (left > 0) this.asking.set(address, left);
      else this.asking.delete(address);
    }
  }

  private recent(from: Map<string, Refusals>, key: string): Refusals | undefined {
    const known = from.get(key);
    return known !== undefined && this.elapsed() - known.since < REFUSED_MILLISECONDS ? known : undefined;
  }

  private note(into: Map<string, Refusals>, key: string, why: string): void {
    const { since = this.elapsed(), count = 0 } = this.recent(into, key) ?? {};
    into.delete(key);
    into.set(key, { since, count: count + 1, why });
    // The oldest one is first.
    for (const oldest of into.keys()) {
      if (into.size <= MOST_REMEMBERED) break;
      into.delete(oldest);
    }
  }
}

interface Refusals {
  /** When the first one was. */
  readonly since: number;
  readonly count: number;
  readonly why: string;
}
