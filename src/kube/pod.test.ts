import { describe, expect, test } from "bun:test";
import type { KubeClient, KubeResponse } from "./api.ts";
import { annotationsOfNamespace, namespaceWarning, readPodAndNamespace } from "./pod.ts";

const POD: KubeResponse = { status: 200, text: '{"metadata":{"name":"web"},"spec":{}}' };
const NAMESPACE: KubeResponse = { status: 200, text: '{"metadata":{"annotations":{"color":"red"}}}' };
const STATUS = { kind: "Status", apiVersion: "v1", status: "Failure", reason: "Forbidden", code: 403 };
const FORBIDDEN: KubeResponse = {
  status: 403,
  text: JSON.stringify({ ...STATUS, message: 'namespaces "shop" is forbidden: User "plugin" cannot get' }),
};

/** Responses for the namespace, one after another. */
function read(...responses: readonly KubeResponse[]) {
  const left = [...responses];
  const client: KubeClient = {
    request: async ({ path }) => (path.includes("/pods/") ? POD : (left.shift() ?? { status: 500, text: "too many" })),
    watch: () => {
      throw new Error("no watch is needed");
    },
    close: async () => undefined,
  };
  return readPodAndNamespace({ namespace: "shop", name: "web" }, client, new AbortController().signal);
}

describe("readPodAndNamespace()", () => {
  test("goes on without a namespace that the role forbids twice", async () => {
    const [, namespace] = await read(FORBIDDEN, FORBIDDEN);
    if (namespace === undefined) throw new Error("no namespace");
    expect(annotationsOfNamespace(namespace)).toEqual({});
    expect(namespaceWarning(namespace)).toContain("the role lacks the permission to get namespaces");
  });

  test("asks again for a namespace that is forbidden: an API server that starts forbids what it allows later", async () => {
    const [, namespace] = await read(FORBIDDEN, NAMESPACE);
    if (namespace === undefined) throw new Error("no namespace");
    expect(annotationsOfNamespace(namespace)).toEqual({ color: "red" });
    expect(namespaceWarning(namespace)).toBeUndefined();
    expect((await read(FORBIDDEN, { status: 404, text: "{}" }))[1]).toBeUndefined();
  });

  test.each([
    ["a proxy", "<html>403 Forbidden</html>"],
    ["a proxy that speaks JSON", '{"message":"forbidden"}'],
    ["another reason", JSON.stringify({ ...STATUS, reason: "Expired", message: "no" })],
  ])("does not go on without a namespace if a 403 is of %s, not of the role", async (_, text) => {
    await expect(read({ status: 403, text }, NAMESPACE)).rejects.toMatchObject({ kind: "api-unavailable" });
    await expect(read(FORBIDDEN, { status: 403, text })).rejects.toMatchObject({ kind: "api-unavailable" });
  });

  test("does not go on without a namespace if the second request fails otherwise", async () => {
    await expect(read(FORBIDDEN, { status: 500, text: "no" })).rejects.toMatchObject({ kind: "api-unavailable" });
  });
});
