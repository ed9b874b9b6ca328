/** Pods whose annotations, or those of their namespaces, keep their addresses, with the built plugin and a real API server. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { KUBE_SITE_STORES, type KubePod, type KubePodPlan, type KubeSite, openKubeSite } from "../support/kube-site.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf } from "../support/plugin-site.ts";

const POOLS = [
  poolChange("blue", "10.61.0.0/24"),
  poolChange("blue6", "fd61::/112"),
  nodeChange("node-1"),
  nodeChange("node-2"),
];
const KEEP = { [annotationKey("keepAddresses")]: "true" };
const DUAL = { ipam: { type: identity.ipamType, assign_ipv6: "true" } };

for (const { kind, problem } of KUBE_SITE_STORES) {
  describe(`kept addresses on ${kind}`, () => {
    const test = testNeeding(problem);
    let kube: KubeSite;
    beforeAll(async () => {
      if (problem !== undefined) return;
      kube = await openKubeSite(kind, POOLS);
      await kube.server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-2" } }));
    }, 120_000);
    afterAll(() => kube?.[Symbol.asyncDispose]());

    const specOn = (nodeName: string) => ({ nodeName, containers: [{ name: "main", image: "none" }] });
    const on = (node: string) => kube.options({ ...DUAL, nodename: node });
    const add = async (pod: KubePod, node = "node-1") =>
      (await kube.site.add(pod, on(node))).ips.map(({ address }) => address.split("/")[0] ?? "");
    const del = (pod: KubePod, node = "node-1") => kube.site.quietly("DEL", pod, on(node));
    const controlledBy = (owner: string, name: string) => ({
      ownerReferences: [{ apiVersion: "apps/v1", kind: owner, name, uid: "1", controller: true }],
    });
    const make = (name: string, node = "node-1", plan: KubePodPlan = {}) =>
      kube.makePod({
        name,
        annotations: KEEP,
        metadata: controlledBy("StatefulSet", "db"),
        spec: specOn(node),
        ...plan,
      });
    const remove = ({ namespace, name }: KubePod) =>
      kube.server.kubectl(["delete", "pod", name, `--namespace=${namespace}`, "--force", "--grace-period=0"]);

    test("a pod of a StatefulSet, on the same and on another node", async () => {
      const first = await make("db-0");
      const own = await add(first);
      expect(own).toHaveLength(2);
      await remove(first);
      const second = await make("db-0", "node-2");
      const refused = failureOf(await kube.site.call("ADD", second, on("node-2")));
      expect(refused).toMatchObject({ code: 11, msg: expect.stringContaining(first.containerId) });
      await del(first);
      const other = await kube.makePod({ name: "other" });
      expect(await add(other)).not.toContainAnyValues(own);

      expect(await add(second, "node-2")).toEqual(own);
      expect(await add(second, "node-2")).toEqual(own);
      await del(second, "node-2");
      await remove(second);
      const third = await make("db-0");
      expect(await add(third)).toEqual(own);
      for (const pod of [third, other]) {
        await del(pod);
        await remove(pod);
      }
    });

    test("one of a Deployment does not, and the log says what would", async () => {
      const plan = { metadata: controlledBy("ReplicaSet", "web-1"), labels: { "pod-template-hash": "1" } };
      const first = await make("web-1-x", "node-1", plan);
      const { code, stderr } = await kube.site.call("ADD", first, on("node-1"));

      expect(code).toBe(0);
      expect(stderr).toContain("Deployment/web");
      expect(stderr).toContain("ipAddrsFrom");
      await del(first);
      await remove(first);
    });

    test("as its namespace says, unless the pod says otherwise; any other word is refused", async () => {
      await kube.server.createNamespace("steady");
      await kube.server.apply(
        JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "steady", annotations: KEEP } }),
      );
      const inSteady = (name: string, annotations: Readonly<Record<string, string>> = {}) =>
        make(name, "node-1", { namespace: "steady", annotations });
      const first = await inSteady("db-1");
      const own = await add(first);
      await del(first);
      await remove(first);
      const second = await inSteady("db-1");
      expect(await add(second)).toEqual(own);
      await del(second);
      await remove(second);
      const third = await inSteady("db-1", { [annotationKey("keepAddresses")]: "false" });
      expect(await add(third)).not.toContainAnyValues(own);
      await del(third);
      const wrong = await inSteady("db-2", { [annotationKey("keepAddresses")]: "yes" });

      expect(failureOf(await kube.site.call("ADD", wrong, on("node-1")))).toMatchObject({
        code: 121,
        msg: expect.stringContaining('"yes"'),
      });
      for (const pod of [third, wrong]) await remove(pod);
    });

    test("with an address that is asked for by its name", async () => {
      const plan = { annotations: { ...KEEP, [annotationKey("ipAddrs")]: '["10.61.0.200"]' } };
      const first = await make("db-3", "node-1", plan);
      expect(await add(first)).toEqual(["10.61.0.200"]);
      await del(first);
      await remove(first);
      const second = await make("db-3", "node-1", {
        annotations: { ...KEEP, [annotationKey("ipAddrs")]: '["10.61.0.201"]' },
      });
      expect(failureOf(await kube.site.call("ADD", second, on("node-1")))).toMatchObject({
        code: 104,
        msg: expect.stringContaining("10.61.0.200"),
      });
      await remove(second);
    });
  });
}
