import { describe, expect, test } from "bun:test";
import { withLiveSelector } from "./live-selector.ts";

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
