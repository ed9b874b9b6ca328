/** The manifests of `deploy/` on a real API server, and the role of the operator. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { renderInstallation, renderUninstall } from "../../src/operator/render/installation.ts";
import { EXAMPLES } from "../support/installations.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

let server: ApiServer;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
}, 60_000);

afterAll(async () => {
  await server?.stop();
});

function deployed(file: string): string {
  return readFileSync(join(import.meta.dir, "../../deploy", file), "utf8");
}

function apply(text: string, more: readonly string[] = []): Promise<string> {
  return server.kubectl(["apply", "--server-side", "--filename=-", ...more], text);
}

describe("operator.yaml", () => {
  const account = `--as=system:serviceaccount:${identity.operator}:${identity.operator}`;
  const asOperator = (objects: readonly object[]) =>
    apply(listOf(objects), [account, `--field-manager=${identity.operator}`]);

  testServer("applies", async () => {
    expect(await apply(deployed("operator.yaml"))).toContain(`deployment.apps/${identity.operator} serverside-applied`);
  });

  testServer("permits the operator to apply what it renders, and to remove it", async () => {
    const { installation, facts } = EXAMPLES["default"] ?? expect.unreachable();
    const etcd = EXAMPLES["etcd-with-secret"] ?? expect.unreachable();
    const ofEtcd = renderInstallation(etcd.installation, etcd.facts).objects;
    const objects = [...renderInstallation(installation, facts).objects, renderUninstall(installation, facts)];

    await asOperator(objects.slice(0, 2));
    // The API server learns of the binding a moment later.
    await pollUntil(() => isWell(asOperator(objects)), "the operator to apply its objects");
    await asOperator(ofEtcd);

    await server.kubectl(["delete", "--wait=false", "--filename=-", account], listOf(objects.toReversed()));
  });

  testServer("permits the operator nothing of that kind under other names", async () => {
    for (const request of [
      "create clusterroles/other",
      "patch daemonsets/other --namespace=kube-system",
      "bind clusterroles/cluster-admin",
      "get secrets --namespace=kube-system",
      "delete namespaces/default",
    ]) {
      const allowed = await isWell(server.kubectl(["auth", "can-i", ...request.split(" "), account]));
      expect([request, allowed]).toEqual([request, false]);
    }
  });
});

function isWell(done: Promise<unknown>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  );
}

function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
