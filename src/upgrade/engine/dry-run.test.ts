import { describe, expect, test } from "bun:test";
import type { KubeRequest } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { planApply } from "./dry-run.ts";

const live = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name: "a", namespace: "x", resourceVersion: "7", managedFields: [] },
  data: { size: "1" },
};
const wanted = { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "x" }, data: { size: "2" } };

function planWith(respond: (request: KubeRequest) => { status: number; body: object }) {
  const request = async (each: KubeRequest) => {
    if (each.method === "PATCH") expect(each.query).toMatchObject({ dryRun: "All" });
    const { status, body } = respond(each);
    return { status, text: JSON.stringify(body) };
  };
  return planApply(clusterObjects({ request }), [wanted]);
}

describe("planApply()", () => {
  test("shows what the server would make of an object, and nothing for one that stays", async () => {
    const changed = await planWith(({ method }) => ({
      status: 200,
      body: method === "GET" ? live : { ...live, data: { size: "2", by: "default" } },
    }));

    expect(changed).toEqual([
      {
        action: "update",
        what: "ConfigMap x/a",
        path: "/api/v1/namespaces/x/configmaps/a",
        diff: expect.stringMatching(/^-\s+size: "1"\n\+\s+size: "2"\n\+\s+by: default$/m),
      },
    ]);
    expect(await planWith(() => ({ status: 200, body: live }))).toEqual([]);
  });

  test("names the manager and the value of each field that it takes by force", async () => {
    const conflict = {
      kind: "Status",
      message: "Apply failed with 1 conflict",
      details: {
        causes: [
          { reason: "FieldManagerConflict", message: 'conflict with "kubectl-edit" using v1', field: ".data.size" },
        ],
      },
    };
    const [change] = await planWith(({ method, query }) => {
      if (method === "GET") return { status: 200, body: live };
      return query?.["force"] === "true" ? { status: 200, body: wanted } : { status: 409, body: conflict };
    });

    expect(change?.conflicts).toEqual([{ field: ".data.size", manager: "kubectl-edit", value: '"1"' }]);
  });

  test("an object whose kind or namespace does not exist yet is not verified", async () => {
    const [change] = await planWith(() => ({ status: 404, body: { kind: "Status", message: "not found" } }));

    expect(change).toMatchObject({ action: "create", isUnverified: true });
  });

  test("does not hide what the server refuses", async () => {
    const refused = planWith(({ method }) =>
      method === "GET" ? { status: 200, body: live } : { status: 422, body: { kind: "Status", message: "immutable" } },
    );

    await expect(refused).rejects.toMatchObject({ kind: "resource-invalid" });
  });

  test("shows that a value of a Secret changes, but not the value", async () => {
    const secret = (value: string) => ({ ...live, kind: "Secret", data: { key: btoa(value) } });
    const [change] = await planWith(({ method }) => ({ status: 200, body: secret(method === "GET" ? "one" : "two") }));

    expect(change?.diff).toMatch(/^-\s+key: \(/m);
    expect(change?.diff).not.toContain(btoa("one"));
  });
});
