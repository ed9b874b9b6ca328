import { describe, expect, test } from "bun:test";
import { Applier } from "./apply.ts";

const binding = {
  apiVersion: "rbac.authorization.k8s.io/v1",
  kind: "RoleBinding",
  metadata: { name: "former", namespace: "vendor-system", uid: "1", resourceVersion: "1" },
};

function applierWith(status: number) {
  const logged: string[] = [];
  const applier = new Applier({
    client: { request: async () => ({ status, text: "refused" }) },
    requireLeading: () => {},
    elapsed: () => 0,
    log: (message, level) => logged.push(`${level} ${message}`),
  });
  return { applier, logged };
}

describe("Applier.prune()", () => {
  test("leaves an object that it may not delete, and says once how to delete it", async () => {
    const { applier, logged } = applierWith(403);
    await applier.prune(binding, "it is not needed");
    await applier.prune(binding, "it is not needed");
    expect(logged).toEqual([
      expect.stringMatching(
        /^WARNING RoleBinding vendor-system\/former stays, .*"kubectl delete rolebinding former --namespace=vendor-system"$/,
      ),
    ]);
  });

  test("fails if the API cannot do it now", async () => {
    await expect(applierWith(500).applier.prune(binding, "it is not needed")).rejects.toThrow("500");
  });
});
