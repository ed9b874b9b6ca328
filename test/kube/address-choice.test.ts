/** Which addresses a pod gets by its namespace, by the families that it asks for, and from a list that it names. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { type AnnotationName, annotationKey } from "../../src/plugin/annotations.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { KUBE_SITE_STORES, type KubePod, type KubeSite, openKubeSite } from "../support/kube-site.ts";
import { testNeeding } from "../support/needs.ts";
import { type AddResult, failureOf } from "../support/plugin-site.ts";
import { builtProgram } from "../support/run-plugin.ts";

const POOLS = [
  poolChange("tenant-a", "10.71.0.0/24", { namespaceSelector: "tenant == 'a'" }),
  poolChange("tenant-b", "10.72.0.0/24", { namespaceSelector: "tenant == 'b'" }),
  poolChange("six", "fd71::/112"),
  nodeChange("node-1"),
  nodeChange("node-2"),
];
const FROM_POOLS: Readonly<Record<string, unknown>> = { ipam: { type: identity.ipamType } };
const LIST = ["10.71.0.200", "10.71.0.9", "fd71::9", "fd71::200"];

for (const { kind, problem } of KUBE_SITE_STORES) {
  describe(`the choice of addresses on ${kind}`, () => {
    const test = testNeeding(problem);
    let kube: KubeSite;
    beforeAll(async () => {
      if (problem !== undefined) return;
      kube = await openKubeSite(kind, POOLS);
      await kube.server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-2" } }));
      for (const [name, labels, annotations] of [
        ["of-a", { tenant: "a" }, {}],
        ["of-b", { tenant: "b" }, { [annotationKey("ipFamilies")]: '["IPv6"]' }],
        ["of-none", {}, {}],
      ] as const) {
        await kube.server.createNamespace(name);
        const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name, labels, annotations } };
        await kube.server.apply(JSON.stringify(namespace));
      }
    }, 120_000);
    afterAll(() => kube?.[Symbol.asyncDispose]());

    type Values = Partial<Record<AnnotationName, string>>;
    const makePod = (namespace: string, values: Values = {}, nodeName = "node-1") =>
      kube.makePod({
        namespace,
        spec: { nodeName },
        annotations: Object.fromEntries(
          Object.entries(values).map(([name, text]) => [annotationKey(name as AnnotationName), text]),
        ),
      });
    const add = async (pod: KubePod) =>
      (await kube.site.add(pod, kube.options(FROM_POOLS))).ips.map(({ address }) => address.replace(/\/.*/, ""));
    const remove = (pod: KubePod) => kube.site.quietly("DEL", pod, kube.options(FROM_POOLS));
    const refusal = async (pod: KubePod) => failureOf(await kube.site.call("ADD", pod, kube.options(FROM_POOLS)));
    /** The beginnings of the addresses of a pod that is deleted afterwards. */
    const networksOf = async (namespace: string, values: Values = {}) => {
      const pod = await makePod(namespace, values);
      const addresses = await add(pod);
      await remove(pod);
      return addresses.map((address) => /^(10\.\d+|fd\d+)/.exec(address)?.[0]);
    };
    const admin = async (words: readonly string[], input = "") => {
      const { code, stdout, stderr } = await kube.site.host.run([builtProgram(identity.adminTool), ...words], {
        environment: kube.adminEnvironment,
        stdin: input,
      });
      return { code, text: stdout + stderr };
    };
    const list = (addresses: readonly string[], namespaceSelector = "tenant == 'a'") =>
      JSON.stringify({
        apiVersion: API_VERSION,
        kind: "IPAddressList",
        metadata: { name: "web" },
        spec: { addresses, namespaceSelector },
      });

    test("follows the labels of the namespace, unless something asks for a pool", async () => {
      const families = { ipFamilies: '["IPv4"]' };

      expect(await networksOf("of-a")).toEqual(["10.71"]);
      expect(await networksOf("of-b", families)).toEqual(["10.72"]);
      expect(await networksOf("of-b", { ...families, ipv4pools: '["tenant-a"]' })).toEqual(["10.71"]);
      const { code, msg, details } = await refusal(await makePod("of-none"));
      expect([code, msg]).toEqual([102, expect.stringContaining('serves namespace "of-none"')]);
      expect(details).toContain('label namespace "of-none"');
      await kube.server.kubectl(["label", "namespace", "of-none", "tenant=b"]);
      expect(await networksOf("of-none")).toEqual(["10.72"]);
      expect(await kube.site.left()).toEqual([]);
    });

    test("follows the families of the pod, or else of its namespace", async () => {
      expect(await networksOf("of-b")).toEqual(["fd71"]);
      expect(await networksOf("of-b", { ipFamilies: '["IPv6", "IPv4"]' })).toEqual(["10.72", "fd71"]);
      expect(await networksOf("of-a", { ipFamilies: '["IPv6"]' })).toEqual(["fd71"]);
      for (const [values, part] of [
        [{ ipFamilies: '["IPv7"]' }, '"IPv7" is not a family'],
        [{ ipFamilies: "[]" }, "the list is empty"],
        [{ ipFamilies: '["IPv6"]', ipAddrs: '["10.71.0.9"]' }, '"10.71.0.9" is of IPv4'],
      ] as const) {
        const { code, msg } = await refusal(await makePod("of-a", values));
        expect([code, msg]).toEqual([121, expect.stringContaining(part)]);
      }
      expect(await kube.site.left()).toEqual([]);
    });

    test("of a list: each pod has the first free one, one too many waits, and another namespace is refused", async () => {
      const refused = await admin(["create", "-f", "-"], list(["10.71.0.9", "10.71.0.0/24"]));
      expect(refused).toEqual({ code: expect.any(Number), text: expect.stringContaining("spec.addresses[1]") });
      expect(refused.code).not.toBe(0);
      expect((await admin(["create", "-f", "-"], list(LIST))).code).toBe(0);
      expect((await admin(["get", "ipaddresslists"])).text).toMatch(/web +4 +10\.71\.0\.200 +tenant == 'a'/);
      const pods = await Promise.all([1, 2, 3].map(() => makePod("of-a", { ipAddrsFrom: "web" })));
      const [first, second, third] = pods as [KubePod, KubePod, KubePod];

      expect(await add(first)).toEqual(["10.71.0.200", "fd71::9"]);
      expect(await add(first)).toEqual(["10.71.0.200", "fd71::9"]);
      expect(await add(second)).toEqual(["10.71.0.9", "fd71::200"]);
      const { code, msg } = await refusal(third);
      expect([code, msg]).toEqual([11, expect.stringContaining("none of its 2 IPv4 addresses is free, 2 in use")]);
      expect(msg).toContain(`10.71.0.200 by pod "of-a/${first.name}" on node "node-1"`);
      await remove(first);
      expect(await add(third)).toEqual(["10.71.0.200", "fd71::9"]);

      const other = await refusal(await makePod("of-b", { ipAddrsFrom: "web" }));
      expect([other.code, other.msg]).toEqual([121, expect.stringContaining('does not select namespace "of-b"')]);
      expect((await admin(["apply", "-f", "-"], list(["10.71.0.210"], "all()"))).code).toBe(0);
      await remove(second);
      await remove(third);
      expect(await networksOf("of-b", { ipAddrsFrom: "web", ipFamilies: '["IPv4"]' })).toEqual(["10.71"]);
      expect((await admin(["delete", "ipaddresslist", "web"])).code).toBe(0);
      const gone = await refusal(await makePod("of-a", { ipAddrsFrom: "web" }));
      expect([gone.code, gone.msg]).toEqual([121, expect.stringContaining("there is no IPAddressList of that name")]);
      expect(await kube.site.left()).toEqual([]);
      expect((await admin(["ipam", "check"])).code).toBe(0);
    });

    test("of a list is never the same for two pods at once", async () => {
      const addresses = Array.from({ length: 6 }, (_, index) => `10.71.0.${100 + index}`);
      await admin(["apply", "-f", "-"], list(addresses));
      const pods = await Promise.all(Array.from({ length: 8 }, () => makePod("of-a", { ipAddrsFrom: "web" })));
      const results = await Promise.all(pods.map((pod) => kube.site.call("ADD", pod, kube.options(FROM_POOLS))));
      const given = results.flatMap(({ code, stdout }) => (code === 0 ? JSON.parse(stdout).ips[0].address : []));

      expect(given.map((text: string) => text.replace("/32", "")).toSorted()).toEqual(addresses);
      expect(results.filter(({ code }) => code !== 0).map((each) => failureOf(each).code)).toEqual([11, 11]);
      for (const pod of pods) await remove(pod);
      await admin(["delete", "ipaddresslist", "web"]);
      expect(await kube.site.left()).toEqual([]);
    });

    test("of a list is never the same on two nodes, and a freed one goes to the pod that waits on the other node", async () => {
      const addresses = ["10.71.0.120", "10.71.0.121", "10.71.0.122"];
      expect((await admin(["apply", "-f", "-"], list(addresses))).code).toBe(0);
      const values: Values = { ipAddrsFrom: "web", ipFamilies: '["IPv4"]' };
      const pods = await Promise.all(
        ["node-1", "node-2", "node-1", "node-2"].map(async (node) => ({
          node,
          pod: await makePod("of-a", values, node),
        })),
      );
      type PodOnNode = (typeof pods)[number];
      const call = (command: "ADD" | "DEL", { node, pod }: PodOnNode) =>
        kube.site.call(command, pod, kube.options({ ...FROM_POOLS, nodename: node }));
      const addressIn = ({ stdout }: { readonly stdout: string }) =>
        (JSON.parse(stdout) as AddResult).ips.map(({ address }) => address.replace("/32", "")).join();
      const results = await Promise.all(pods.map(async (each) => ({ ...each, result: await call("ADD", each) })));
      const given = results.flatMap(({ result, ...each }) =>
        result.code === 0 ? [{ ...each, address: addressIn(result) }] : [],
      );
      expect(given.map(({ address }) => address).toSorted()).toEqual(addresses);

      const waiting = results.find(({ result }) => result.code !== 0) ?? expect.unreachable();
      const leaving = given.find(({ node }) => node !== waiting.node) ?? expect.unreachable();
      // As the runtime tries again.
      const { code, msg } = failureOf(await call("ADD", waiting));
      expect([code, msg]).toEqual([11, expect.stringContaining("none of its 3 IPv4 addresses is free, 3 in use")]);
      for (const { address, pod, node } of given)
        expect(msg).toContain(`${address} by pod "of-a/${pod.name}" on node "${node}"`);
      expect((await call("DEL", leaving)).code).toBe(0);
      expect(addressIn(await call("ADD", waiting))).toBe(leaving.address);
      expect(failureOf(await call("ADD", leaving)).msg).toContain(
        `${leaving.address} by pod "of-a/${waiting.pod.name}" on node "${waiting.node}"`,
      );
      for (const each of pods) await call("DEL", each);
      await admin(["delete", "ipaddresslist", "web"]);
      expect(await kube.site.left()).toEqual([]);
      expect((await admin(["ipam", "check"])).code).toBe(0);
    });

    test("costs the API no request but the one for the list, and that only if a pod names one", async () => {
      await admin(["apply", "-f", "-"], list(LIST));
      await add(await makePod("of-a"));
      const countOf = async (values: Values) => {
        const pod = await makePod("of-a", values);
        const audit = kube.server.startAudit();
        await add(pod);
        return audit.counts(kube.user);
      };
      const plain = await countOf({});
      const listed = await countOf({ ipAddrsFrom: "web", ipFamilies: '["IPv4"]' });

      const [lists, ofKinds] = ["get ipaddresslists", Object.keys(plain).filter((what) => what.startsWith("get "))];
      expect(plain[lists]).toBeUndefined();
      expect([plain["get pods"], plain["get namespaces"], ofKinds.length > 1]).toEqual([1, 1, true]);
      expect(listed[lists]).toBe(kind === "etcd" ? undefined : 1);
    });
  });
}
