/** What the console of a large cluster talks to: an API server with many Nodes, imitated over HTTP; and the server of the console. */
import { join } from "node:path";
import { nodeAddress, nodeName } from "../../sim/scale/cluster-records.ts";
import { apiVersionOf, identity, OPERATOR_API } from "../../src/identity.ts";
import type { KubeRequest } from "../../src/kube/api.ts";
import { startFakeApi } from "../../test/support/kube-api/fake-api.ts";

const { systemNamespace: SYSTEM, nodeAgent, product } = identity;
const REVIEWS = /self(subject|subjectaccess)reviews$/;

export interface ScaleApi extends Disposable {
  readonly address: string;
}

/** Everybody may do everything. */
export function startScaleApi(nodes: number): ScaleApi {
  const api = startFakeApi({ now: () => new Date() });
  for (const [path, object] of objectsOf(nodes)) api.respond({ method: "POST", path, body: JSON.stringify(object) });
  const server = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 0 },
    async fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (REVIEWS.test(pathname))
        return Response.json(
          { status: { allowed: true, userInfo: { username: "reader", groups: [] } } },
          { status: 201 },
        );
      const asked: KubeRequest = {
        ...{ method: request.method as KubeRequest["method"], path: pathname, query: Object.fromEntries(searchParams) },
        ...(request.method === "GET" ? {} : { body: await request.text() }),
      };
      const { status, text } = api.respond(asked);
      return new Response(text, { status, headers: { "content-type": "application/json" } });
    },
  });
  return { address: `http://127.0.0.1:${server.port}`, [Symbol.dispose]: () => void server.stop(true) };
}

function* objectsOf(nodes: number): Iterable<readonly [path: string, object: object]> {
  const template = { spec: { containers: [{ image: `registry.example/${product}:v1` }] } };
  const status = { desiredNumberScheduled: nodes, numberReady: nodes, updatedNumberScheduled: nodes };
  const agents = { metadata: { name: nodeAgent, namespace: SYSTEM }, spec: { template }, status };
  yield [`/apis/apps/v1/namespaces/${SYSTEM}/daemonsets`, agents];
  const conditions = [{ type: "Ready", status: "True", reason: "", message: "" }];
  const installation = { metadata: { name: "default" }, status: { conditions } };
  yield [`/apis/${apiVersionOf(OPERATOR_API)}/installations`, installation];
  for (let index = 0; index < nodes; index++) {
    const [name, address] = [nodeName(index), nodeAddress(index)];
    yield [
      "/api/v1/nodes",
      { metadata: { name }, status: { conditions, addresses: [{ type: "InternalIP", address }] } },
    ];
    const labels = { "app.kubernetes.io/name": nodeAgent };
    const pod = {
      metadata: { name: `${nodeAgent}-${index}`, namespace: SYSTEM, labels },
      spec: { nodeName: name, containers: [{ image: `registry.example/${product}:v1` }] },
      status: {
        ...{ phase: "Running", conditions, podIPs: [{ ip: address }] },
        containerStatuses: [{ restartCount: 0 }],
      },
    };
    yield [`/api/v1/namespaces/${SYSTEM}/pods`, pod];
  }
}

export interface StartedConsole extends AsyncDisposable {
  readonly address: string;
  readonly pid: number;
}

export async function startConsoleServer(apiServer: string, etcd: string): Promise<StartedConsole> {
  const program = join(import.meta.dir, "console-server.process.ts");
  const child = Bun.spawn([process.execPath, program, apiServer, etcd], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await child.stdout.getReader().read();
  return {
    ...{ address: new TextDecoder().decode(value).trim(), pid: child.pid },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}
