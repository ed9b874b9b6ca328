/** The cluster with the policy of the tests, and how they ask the pod "web". */
import { type HttpOutcome, type HttpTarget, openHttpConnection } from "../support/http-connection.ts";
import { pollUntil } from "../support/poll.ts";
import { type AlpCluster, type ClientName, openAlpCluster, SHOP } from "./alp-cluster.ts";
import { isThrough } from "./load.ts";
import { policyOfWeb, type Row } from "./request-rows.ts";
import { PORTS } from "./served-pod.ts";

export interface AlpSite extends AsyncDisposable {
  readonly cluster: AlpCluster;
  /** The address of the pod without a sidecar. */
  readonly alone: string;
  /** Plain, or with mutual TLS if there is an identity. */
  targetOf(client: ClientName, identity?: string): HttpTarget;
  /** On a connection of its own. */
  ask(question: Question, other?: { readonly address?: string; readonly port?: number }): Promise<HttpOutcome>;
}

type Question = Pick<Row, "client" | "identity" | "method" | "path" | "headers">;

export const PUBLIC = { client: "frontend", method: "GET", path: "/public" } as const;

export async function openAlpSite(): Promise<AlpSite> {
  await using undo = new AsyncDisposableStack();
  const cluster = undo.use(await openAlpCluster());
  await cluster.apply(policyOfWeb(cluster.clients.stranger.address));
  const [web, alone] = await Promise.all([cluster.ready(SHOP, "web"), cluster.ready(SHOP, "alone")]);
  const targetOf = (client: ClientName, identity?: string) => ({
    netns: cluster.clients[client].netns,
    address: web,
    port: identity === undefined ? PORTS.plain : PORTS.mutualTls,
    ...(identity === undefined ? {} : { certificate: cluster.certificateOf(identity) }),
  });
  const ask = async (question: Question, other: { readonly address?: string; readonly port?: number } = {}) => {
    using connection = openHttpConnection({ ...targetOf(question.client, question.identity), ...other });
    return await connection.ask(question);
  };
  await pollUntil(async () => isThrough({ outcome: await ask(PUBLIC) }), "the first request that is allowed");
  const all = undo.move();
  return { cluster, alone, targetOf, ask, [Symbol.asyncDispose]: () => all.disposeAsync() };
}
