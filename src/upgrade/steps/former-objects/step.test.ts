import { describe, expect, test } from "bun:test";
import { objectTable } from "../../../../test/support/object-table.ts";
import { upgradeSite } from "../../../../test/support/upgrade-site.ts";
import { identity } from "../../../identity.ts";
import { formerObjectsStep } from "./step.ts";

const { product, systemNamespace } = identity;
const RBAC = "rbac.authorization.k8s.io/v1";
const CSI = "csi-node-driver";

const daemonSet = (name: string, container: object) => ({
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: { name, namespace: "kube-system" },
  spec: { template: { spec: { containers: [container] } } },
});
const account = (name: string, namespace = "kube-system") => ({
  apiVersion: "v1",
  kind: "ServiceAccount",
  metadata: { name, namespace },
});
const role = (name: string) => ({ apiVersion: RBAC, kind: "ClusterRole", metadata: { name } });
const binding = (name: string, namespace = "kube-system") => ({
  apiVersion: RBAC,
  kind: "ClusterRoleBinding",
  metadata: { name },
  subjects: [{ kind: "ServiceAccount", name, namespace }],
});
const TYPHA = account(`${product}-typha`);

async function planOf(items: readonly object[], namespace = "kube-system") {
  const facts = { namespace, method: { kind: "operator" } as const };
  const plan = await formerObjectsStep.plan(upgradeSite({ objects: objectTable(items).objects, facts }));
  return { deleted: plan?.changes.map(({ what }) => what) ?? [], notes: plan?.notes ?? [] };
}

describe("the plan to remove former objects", () => {
  test("keeps objects of other products that have the same names, and says so", async () => {
    const { deleted, notes } = await planOf([
      TYPHA,
      daemonSet(CSI, { name: "driver", image: "registry.example/storage/csi-driver:v1" }),
      ...[account(CSI), role(CSI), binding(CSI), account("canal"), role("canal"), binding("canal", "other")],
    ]);

    expect(deleted).toEqual([`ServiceAccount kube-system/${product}-typha`]);
    expect(notes).toEqual(
      [
        `DaemonSet kube-system/${CSI}`,
        ...[`ClusterRoleBinding ${CSI}`, "ClusterRoleBinding canal", `ClusterRole ${CSI}`, "ClusterRole canal"],
        ...[`ServiceAccount kube-system/${CSI}`, "ServiceAccount kube-system/canal"],
      ].map((what) => expect.stringMatching(new RegExp(`^${what} is kept`))),
    );
  });

  test.each<[string, object]>([
    ["by the name of a container", { name: `${product}-csi`, image: "registry.example/mirror/csi:v3.26.1" }],
    ["by its image", { name: "csi", image: `registry.example/${product}/csi:v3.26.1` }],
  ])("removes the product's own, recognized %s", async (_, container) => {
    const { deleted, notes } = await planOf([daemonSet(CSI, container), account(CSI), role(CSI), binding(CSI)]);

    expect(deleted).toEqual([
      `DaemonSet kube-system/${CSI}`,
      `ClusterRoleBinding ${CSI}`,
      `ClusterRole ${CSI}`,
      `ServiceAccount kube-system/${CSI}`,
    ]);
    expect(notes).toEqual([]);
  });

  describe("the driver of the volumes of former sidecars", () => {
    const image = `registry.example/${product}/csi:v3.26.1`;
    const args = ["--kubelet-registration-path=/var/lib/kubelet/plugins/csi.example.org/csi.sock"];
    const driver = [daemonSet(CSI, { name: "csi", image, args }), account(CSI)];
    const pod = (container: string, volume: object) => ({
      ...{ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "shop" } },
      spec: { containers: [{ name: "web" }, { name: container }], volumes: [{ name: "policy", ...volume }] },
    });
    const csi = (name: string) => ({ csi: { driver: name } });
    const kept = expect.stringContaining(`DaemonSet kube-system/${CSI}, ServiceAccount kube-system/${CSI}`);

    test.each<[string, object]>([
      ["of this driver", pod("other", csi("csi.example.org"))],
      ["of any driver for the former sidecar", pod("dikastes", csi("csi.elsewhere.example"))],
    ])("stays while a pod has a volume %s, and the plan says so", async (_, user) => {
      const { deleted, notes } = await planOf([TYPHA, ...driver, user]);

      expect([deleted, notes]).toEqual([[`ServiceAccount kube-system/${product}-typha`], [kept]]);
      expect(await planOf([...driver, user])).toEqual({ deleted: [], notes: [kept] });
    });

    test.each<[string, object]>([
      ["the volume of this release", pod(identity.sidecar, csi(identity.csiDriver))],
      ["a volume of another driver", pod("other", csi("csi.elsewhere.example"))],
      ["a FlexVolume", pod("dikastes", { flexVolume: { driver: "nodeagent/uds" } })],
    ])("goes while pods have %s", async (_, user) => {
      expect((await planOf([...driver, user])).deleted).toHaveLength(2);
    });

    test("stays if a pod with a volume of it was started after the plan was made", async () => {
      const facts = { namespace: "kube-system", method: { kind: "operator" } as const };
      const plan = await formerObjectsStep.plan(upgradeSite({ objects: objectTable(driver).objects, facts }));
      if (plan === undefined) throw new Error("no plan");
      // A table that refuses writes.
      const { objects } = objectTable([...driver, pod("dikastes", csi("csi.example.org"))]);
      const site = upgradeSite({ objects, facts });
      await formerObjectsStep.act(site, plan);

      expect(plan.changes).toHaveLength(2);
      expect(await formerObjectsStep.remaining(site, plan)).toEqual([]);
      expect(site.lines).toContainEqual(expect.stringContaining(`DaemonSet kube-system/${CSI} is kept`));
    });
  });

  test("removes the account of canal beside the DaemonSet, which stays", async () => {
    const { deleted } = await planOf([daemonSet("canal", { name: identity.nodeAgent }), account("canal")]);

    expect(deleted).toEqual(["ServiceAccount kube-system/canal"]);
  });

  test("removes everything of the list in the product's namespace", async () => {
    const items = [account(CSI, systemNamespace), role(CSI), binding(CSI, systemNamespace)];

    expect((await planOf(items, systemNamespace)).deleted).toHaveLength(3);
  });
});
