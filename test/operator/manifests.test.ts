/** The manifests of a release on a real API server, and the role of the operator. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { admissionFiles } from "../../src/release/admission/admission-files.ts";
import { manifestFiles } from "../../src/release/manifests/manifest-files.ts";
import { releasedFiles } from "../../src/release/released-files.ts";
import { renderInstallation, renderUninstall } from "../../src/release/workloads/render-installation.ts";
import { EXAMPLES } from "../support/installations.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);

const OPERATOR = "operator.yaml";
const FILES = releasedFiles();

let server: ApiServer;

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer();
}, 120_000);

afterAll(async () => {
  await server?.stop();
});

/** The definitions of several manifests are the same: each document is applied once. */
const applied = new Set<string>();

async function expectApplied(file: string): Promise<void> {
  const text = FILES[file]?.() ?? expect.unreachable();
  const documents = text.split("---\n").filter((document) => !applied.has(document));
  for (const document of documents) applied.add(document);
  const lines = (await apply(documents.join("---\n"))).trim().split("\n");
  expect(lines).toEqual(documents.map(() => expect.stringMatching(/ serverside-applied$/)));
}

function apply(text: string, more: readonly string[] = []): Promise<string> {
  return server.kubectl(["apply", "--server-side", "--filename=-", ...more], text);
}

describe(OPERATOR, () => {
  const account = `--as=system:serviceaccount:${identity.operator}:${identity.operator}`;
  const asOperator = (objects: readonly object[]) =>
    apply(listOf(objects), [account, `--field-manager=${identity.operator}`]);

  testServer("applies", () => expectApplied(OPERATOR));

  testServer("permits the operator to apply what it renders, and to remove it", async () => {
    const { installation, facts } = EXAMPLES["console"] ?? expect.unreachable();
    const etcd = EXAMPLES["etcd-with-secret"] ?? expect.unreachable();
    const ofEtcd = renderInstallation(etcd.installation, etcd.facts).objects;
    const objects = [...renderInstallation(installation, facts).objects, renderUninstall(installation, facts)];

    await asOperator(objects.slice(0, 2));
    // The API server learns of the binding a moment later.
    const mayReadSecrets = ["auth", "can-i", "get", "secrets", `--namespace=${identity.systemNamespace}`, account];
    await pollUntil(() => isWell(server.kubectl(mayReadSecrets)), "the operator to be permitted Secrets");
    await asOperator(objects);
    await asOperator(ofEtcd.filter((object) => !objects.some((each) => Bun.deepEquals(each, object))));

    await server.kubectl(["delete", "--wait=false", "--filename=-", account], listOf(objects.toReversed()));
  });

  testServer("permits the operator nothing of that kind under other names, and no Secrets elsewhere", async () => {
    const requests = [
      "create clusterroles/other",
      "bind clusterroles/cluster-admin",
      "delete namespaces/default",
      "get secrets --namespace=kube-system",
    ];
    const answers = requests.map(async (request) => {
      const isAllowed = await isWell(server.kubectl(["auth", "can-i", ...request.split(" "), account]));
      return isAllowed ? [request] : [];
    });
    expect((await Promise.all(answers)).flat()).toEqual([]);
  });
});

const ADMISSION = Object.keys(admissionFiles()).map((name) => `admission/${name}`);

describe("the manifests without the operator", () => {
  for (const file of [...Object.keys(manifestFiles()).filter((name) => name !== OPERATOR), ...ADMISSION]) {
    testServer(`${file} applies`, () => expectApplied(file));
  }
});

describe("the removal of a manifest", () => {
  testServer("can keep the custom resources, and with them pools and addresses", async () => {
    const selector = `--selector=app.kubernetes.io/part-of=${identity.product}`;
    const text = manifestText(`${identity.product}.yaml`);
    const deleted = await server.kubectl(["delete", "--wait=false", "--filename=-", selector], text);

    expect(deleted).toContain(`daemonset.apps "${identity.nodeAgent}" deleted`);
    expect(deleted).not.toContain("customresourcedefinition");
    expect(deleted.trim().split("\n")).toHaveLength(text.split("---\n").filter(isOfComponents).length);
  });
});

function isOfComponents(document: string): boolean {
  return !document.includes("kind: CustomResourceDefinition");
}

function isWell(done: Promise<unknown>): Promise<boolean> {
  return done.then(
    () => true,
    () => false,
  );
}

function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
