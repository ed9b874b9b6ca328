/** The client of the orchestrator's API on a real kube-apiserver: who is let in, and what is said to those who are not. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { KubeAccess } from "../../src/config/kube-access.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { requireOk } from "../../src/kube/require-ok.ts";
import { LIMITS } from "../../src/kube/retries.ts";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { kubeconfigText, meansWith } from "../support/imitated-api.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { rejectionOf } from "../support/thrown-by.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

const NAMESPACE = { method: "GET", path: "/api/v1/namespaces/default" } as const;

let server: ApiServer;
beforeAll(async () => {
  // Most connections are asked to go away after some requests, as with several API servers behind a balancer.
  if (problem === undefined) server = await startApiServer({ apiServerFlags: ["--goaway-chance=0.02"] });
});
afterAll(() => server?.stop());

async function withClient<T>(access: KubeAccess, work: (client: KubeClient) => Promise<T>): Promise<T> {
  const client = await openKubeClient(access, meansWith({ limits: LIMITS }));
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

async function kubeconfig(user: object, cluster: object = {}): Promise<string> {
  const file = join(server.directory, `${crypto.randomUUID()}.kubeconfig`);
  await Bun.write(file, kubeconfigText(server.url, user, cluster));
  return file;
}

const whoAmI = { method: "POST", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews" } as const;

async function userOf(access: KubeAccess): Promise<string> {
  const body = '{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}';
  const response = await withClient(access, (client) => client.request({ ...whoAmI, body }));
  return JSON.parse(requireOk(response, whoAmI)).status.userInfo.username;
}

describe("a client of the API is let in", () => {
  testServer("by a certificate, in files and in the kubeconfig", async () => {
    const { admin, authority } = server.credentials;
    const user = { "client-certificate": admin.cert, "client-key": admin.key };
    const inFiles = await kubeconfig(user, { "certificate-authority": authority.cert });
    expect(await userOf({ kubeconfigs: [inFiles] })).toBe("admin");
    expect(await userOf({ kubeconfigs: [server.adminKubeconfig] })).toBe("admin");
  });

  testServer("by the token of a service account, in a kubeconfig and in the fields of older configs", async () => {
    const { kubeconfig: file, token, user } = await server.serviceAccount({ name: "plain" });
    expect(await userOf({ kubeconfigs: [file] })).toBe(user);
    const certificateAuthorityFile = server.credentials.authority.cert;
    expect(await userOf({ apiRoot: server.url, token, certificateAuthorityFile })).toBe(user);
  });

  testServer("by an exec plugin", async () => {
    const { token, user } = await server.serviceAccount({ name: "plain" });
    const credential = { apiVersion: "client.authentication.k8s.io/v1", kind: "ExecCredential", status: { token } };
    const exec = { apiVersion: credential.apiVersion, command: "/bin/echo", args: [JSON.stringify(credential)] };
    const file = await kubeconfig({ exec }, { "certificate-authority": server.credentials.authority.cert });
    expect(await userOf({ kubeconfigs: [file] })).toBe(user);
  });

  testServer("under another name of the server, if the kubeconfig says which", async () => {
    const { admin, authority } = server.credentials;
    const user = { "client-certificate": admin.cert, "client-key": admin.key };
    const cluster = { "certificate-authority": authority.cert, "tls-server-name": "kubernetes.default.svc" };
    expect(await userOf({ kubeconfigs: [await kubeconfig(user, cluster)] })).toBe("admin");
  });
});

describe("a client of the API is refused", () => {
  async function refusalWith(access: KubeAccess) {
    return rejectionOf(() =>
      withClient(access, async (client) => requireOk(await client.request(NAMESPACE), NAMESPACE)),
    );
  }

  testServer("with an expired certificate: the file and the date", async () => {
    const { authority } = server.credentials;
    const subject = "/O=system:masters/CN=admin";
    const expired = makeSigned(server.directory, "expired", authority, { subject, days: -1 });
    const user = { "client-certificate": expired.cert, "client-key": expired.key };
    const file = await kubeconfig(user, { "certificate-authority": authority.cert });
    expect((await refusalWith({ kubeconfigs: [file] })).message).toMatch(
      /does not accept the client certificate "\/.*expired\.crt", which expired on 20\d\d-.* \(401 Unauthorized\)$/,
    );
  });

  testServer("with the token of another cluster", async () => {
    const certificateAuthorityFile = server.credentials.authority.cert;
    const failure = await refusalWith({ apiRoot: server.url, token: "hidden-word", certificateAuthorityFile });
    expect(failure.message).toContain("the API does not accept the token of the network config (401 Unauthorized)");
    expect(Bun.inspect(failure)).not.toContain("hidden-word");
  });

  testServer("without a permission: verb, resource and rule", async () => {
    const { kubeconfig: file, user } = await server.serviceAccount({ name: "plain" });
    const failure = await refusalWith({ kubeconfigs: [file] });
    expect(failure.message).toContain(
      'Cannot get namespaces "default": the role lacks the permission to get namespaces',
    );
    expect(failure.message).toContain(user);
    expect(failure.details).toContain('resources: ["namespaces"], verbs: ["get"]');
  });

  testServer("and refuses a server of another authority", async () => {
    const other = makeRoot(server.directory, "other");
    const failure = await refusalWith({ apiRoot: server.url, token: "t", certificateAuthorityFile: other.cert });
    expect(failure.message).toContain(`failed at stage "TLS": the server's certificate is not signed by`);
    expect(failure.message).toContain(other.cert);
  });
});

describe("requests to the API", () => {
  testServer("are all answered while the server closes connections now and then", async () => {
    await withClient({ kubeconfigs: [server.adminKubeconfig] }, async (client) => {
      const statuses = await Promise.all(
        Array.from({ length: 20 }, async () => {
          const seen = new Set<number>();
          for (let count = 0; count < 50; count += 1) seen.add((await client.request(NAMESPACE)).status);
          return [...seen];
        }),
      );
      expect(new Set(statuses.flat())).toEqual(new Set([200]));
    });
  });

  testServer("name the program in the audit log", async () => {
    const audit = server.startAudit();
    await withClient({ kubeconfigs: [server.adminKubeconfig] }, (client) => client.request(NAMESPACE));
    expect(audit.requests("admin").at(-1)?.userAgent).toMatch(/^vendor\/v\d/);
  });

  testServer("a read waits for a server that stands still for a moment", async () => {
    await withClient({ kubeconfigs: [server.adminKubeconfig] }, async (client) => {
      expect(await client.request(NAMESPACE)).toMatchObject({ status: 200 });
      server.apiServer.signal("SIGSTOP");
      const reading = client.request(NAMESPACE);
      await Bun.sleep(200);
      server.apiServer.signal("SIGCONT");
      expect(await reading).toMatchObject({ status: 200 });
    });
  });

  testServer("use another connection after one that went silent", async () => {
    const limits = { attemptMilliseconds: 1_500, wholeMilliseconds: 3_000, briefMilliseconds: 200 };
    const client = await openKubeClient({ kubeconfigs: [server.adminKubeconfig] }, meansWith({ limits }));
    expect(await client.request(NAMESPACE)).toMatchObject({ status: 200 });
    server.apiServer.signal("SIGSTOP");
    await pollUntil(() => isStopped(server.apiServer.pid), "all threads of the API server to be stopped");
    const failure = await rejectionOf(() => client.request(NAMESPACE));
    expect(failure.message).toContain("no response within the time limit");
    server.apiServer.signal("SIGCONT");
    expect(await client.request({ ...NAMESPACE, attempt: "retry" })).toMatchObject({ status: 200 });
    await client.close();
  });
});

describe("a watch of the API", () => {
  testServer("returns changes, and reports history that is gone after a restart of the server", async () => {
    await withClient({ kubeconfigs: [server.adminKubeconfig] }, async (client) => {
      const list = { method: "GET", path: "/api/v1/namespaces" } as const;
      const { resourceVersion } = JSON.parse(requireOk(await client.request(list), list)).metadata;
      const first = firstEvent(client, resourceVersion);
      await server.createNamespace("watched");
      expect((await first)?.text).toContain('"name":"watched"');

      await server.apiServer.restart();
      const { type, text = "" } = (await firstEvent(client, resourceVersion)) ?? {};
      expect(type).toBe("ERROR");
      expect(JSON.parse(text)).toMatchObject({ code: 410 });
    });
  });

  async function firstEvent(client: KubeClient, resourceVersion: string) {
    const signal = AbortSignal.timeout(20_000);
    for await (const event of client.watch("/api/v1/namespaces", { resourceVersion }, signal)) {
      if (event.type !== "OPENED") return event;
    }
    return undefined;
  }
});

function isStopped(pid: number): boolean {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.every((task) => /^State:\tT/m.test(readFileSync(`/proc/${pid}/task/${task}/status`, "utf8")));
}
