/** The API server that tests of the orchestrator use starts in seconds, and works as they expect. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { hostProblem, openHost } from "../support/host.ts";
import { type ApiServer, apiServerProblem, kubeProgram, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

const READER = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: reader }
rules: [{ apiGroups: [""], resources: [pods], verbs: [get, list] }]
`;

describe("startApiServer()", () => {
  let server: ApiServer;
  beforeAll(async () => {
    if (problem === undefined) server = await startApiServer();
  });
  afterAll(() => server?.stop());

  testServer("serves a ServiceAccount with the rights of its role, and counts its requests", async () => {
    await server.apply(READER);
    const { kubeconfig, user } = await server.serviceAccount({ name: "reader", clusterRole: "reader" });
    await server.createNamespace("counted");
    const audit = server.startAudit();

    await server.kubectl([`--kubeconfig=${kubeconfig}`, "get", "pods", "--namespace=counted"]);
    await expect(server.kubectl([`--kubeconfig=${kubeconfig}`, "get", "secrets"])).rejects.toThrow(
      `User "${user}" cannot list resource "secrets"`,
    );

    expect(audit.counts(user)).toMatchObject({ "list pods": 1, "list secrets": 1 });
    expect(audit.requests(user).find(({ resource }) => resource === "secrets")?.status).toBe(403);
    expect(audit.requests(user).find(({ resource }) => resource === "pods")?.namespace).toBe("counted");
  });

  testNeeding(problem, hostProblem())("is reachable at the same URL on a private host", async () => {
    await using host = await openHost();
    const kubectl = (...args: readonly string[]) =>
      host.run([kubeProgram("kubectl"), `--kubeconfig=${server.adminKubeconfig}`, ...args]);
    expect((await kubectl("get", "--raw", "/readyz")).stderr).toContain("refused");

    using _relay = await server.relayInto(host.netns);

    expect((await kubectl("get", "--raw", "/readyz")).stdout).toBe("ok");
    expect((await kubectl("get", "--raw", "/openapi/v2")).stdout.length).toBeGreaterThan(1_000_000);
  });

  testServer("keeps its objects while it and its etcd are killed and started again", async () => {
    await server.createNamespace("kept");

    await Promise.all([server.etcd.kill(), server.apiServer.kill()]);
    await expect(server.kubectl(["get", "namespace", "kept"])).rejects.toThrow("refused");
    await server.etcd.restart();
    await server.apiServer.restart();

    expect(await server.get<{ metadata: { name: string } }>("namespace", "kept")).toMatchObject({
      metadata: { name: "kept" },
    });
  });
});

describe("a test run that is killed", () => {
  testServer("leaves no program behind", async () => {
    const owner = Bun.spawn([process.execPath, join(import.meta.dir, "killed-owner.process.ts")], { stdout: "pipe" });
    const { value } = await owner.stdout.getReader().read();
    const { directory } = JSON.parse(new TextDecoder().decode(value)) as { directory: string };
    const started = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"];
    await pollUntil(() => Bun.deepEquals(programsOf(directory), started), "the start of all programs");

    owner.kill("SIGKILL");
    await owner.exited;

    await pollUntil(() => programsOf(directory).length === 0, "the end of all programs");
    temporaryDirectory("kube").remove();
    expect(existsSync(directory)).toBe(false);
  });
});

/** The names of the programs that have the directory in their arguments. */
function programsOf(directory: string): readonly string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => commandOf(pid))
    .filter((command) => command.includes(directory))
    .map((command) => basename(command.split("\0")[0] ?? ""))
    .sort();
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    return "";
  }
}
