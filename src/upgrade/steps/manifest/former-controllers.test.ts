import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../../../test/support/thrown-by.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import type { ClusterObjects } from "../../../kube/objects.ts";
import { stopFormerControllers } from "./former-controllers.ts";

/** A pod of theirs is on a node that is down. */
function siteWith(storage: "former" | "etcd") {
  const patches: object[] = [];
  const objects = {
    read: async () => ({ spec: { replicas: 1, selector: { matchLabels: { app: "controllers" } } } }),
    list: async () => [{ metadata: { name: "controllers-1" }, spec: { nodeName: "two" } }],
    patch: async (_: string, patch: object) => void patches.push(patch),
  };
  const options = { stallSeconds: 600, nodeSeconds: 60 };
  const site = upgradeSite({ objects: objects as unknown as ClusterObjects, facts: { storage }, options });
  return { site, patches };
}

describe("stopFormerControllers()", () => {
  test("does not wait for a node that is down while the datastore is locked", async () => {
    const { site, patches } = siteWith("former");
    const begun = site.now().getTime();
    await stopFormerControllers(site);

    expect(patches).toEqual([{ spec: { replicas: 0 } }]);
    expect(site.now().getTime() - begun).toBe(60_000);
    expect(site.lines.at(-1)).toMatch(/do not end \(pod controllers-1 on node two\): the upgrade goes on without it/);
  });

  test("waits for it on etcd, where both releases write the same records", async () => {
    const { site } = siteWith("etcd");

    expect((await rejectionOf(() => stopFormerControllers(site))).kind).toBe("not-ready");
  });
});
