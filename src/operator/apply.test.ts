import { describe, expect, test } from "bun:test";
import { Applier, withLiveSelector } from "./apply.ts";

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

const workload = (selector: object, labels: object) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name: "vendor-node", namespace: "vendor-system", uid: "1", resourceVersion: "1" },
  spec: { selector: { matchLabels: selector }, template: { metadata: { labels, annotations: { a: "b" } }, spec: {} } },
});

describe("withLiveSelector()", () => {
  test("keeps the selector of the workload that exists, and labels the new pods so that it selects them", () => {
    const rendered = workload({ app: "new" }, { app: "new" });
    const live = workload({ "k8s-app": "vendor-node" }, { "k8s-app": "vendor-node" });

    expect(withLiveSelector(rendered, live)).toEqual(
      workload({ "k8s-app": "vendor-node" }, { app: "new", "k8s-app": "vendor-node" }),
    );
  });

  test("changes nothing without a workload, or with the same selector", () => {
    const rendered = workload({ app: "new" }, { app: "new" });
    expect(withLiveSelector(rendered, undefined)).toBe(rendered);
    expect(withLiveSelector(rendered, workload({ app: "new" }, { app: "old" }))).toBe(rendered);
  });
});
