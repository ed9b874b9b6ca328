/** A server that answers as the orchestrator's API does, and clients of it with short time limits. */
import type { KubeAccess } from "../../src/config/kube-access.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { type KubeMeans, openKubeClient } from "../../src/kube/client.ts";

type Answer = (request: Request, count: number) => Response | Promise<Response>;

export interface ImitatedApi {
  readonly url: string;
  readonly requests: { readonly url: string; readonly headers: Headers }[];
  [Symbol.dispose](): void;
}

/** A server that answers as the API does, on loopback; `count` starts at 1. */
export function imitateApi(answer: Answer, tls?: { readonly cert: string; readonly key: string }): ImitatedApi {
  const requests: { readonly url: string; readonly headers: Headers }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    ...(tls ? { tls: { cert: Bun.file(tls.cert), key: Bun.file(tls.key) } } : {}),
    fetch(request) {
      requests.push({ url: request.url, headers: request.headers });
      return answer(request, requests.length);
    },
  });
  return {
    url: `${tls ? "https" : "http"}://127.0.0.1:${server.port}`,
    requests,
    [Symbol.dispose]: () => void server.stop(true),
  };
}

export const LIMITS = { attemptMilliseconds: 1_000, wholeMilliseconds: 3_000, briefMilliseconds: 500 };

export function meansWith(more: Partial<KubeMeans> = {}): KubeMeans {
  return {
    environment: {},
    now: () => new Date(),
    elapsed: () => performance.now(),
    warn: () => {},
    limits: LIMITS,
    serviceAccountDirectory: "/nonexistent",
    ...more,
  };
}

export async function withClient<T>(
  access: KubeAccess,
  work: (client: KubeClient) => Promise<T>,
  means = meansWith(),
): Promise<T> {
  const client = await openKubeClient(access, means);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

export function kubeconfigText(server: string, user: object, cluster: object = {}): string {
  return JSON.stringify({
    clusters: [{ name: "c", cluster: { server, ...cluster } }],
    users: [{ name: "u", user }],
    contexts: [{ name: "x", context: { cluster: "c", user: "u" } }],
    "current-context": "x",
  });
}
