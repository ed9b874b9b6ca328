/** The addresses of pods are those that their annotations, and those of their namespaces, ask for. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { type AnnotationName, annotationKey } from "../../src/plugin/annotations.ts";
import { listChange, nodeChange, poolChange } from "../support/ipam.ts";
import {
  KUBE_SITE_STORES,
  type KubePod,
  type KubeSite,
  type KubeSiteStore,
  openKubeSite,
} from "../support/kube-site.ts";
import { testNeeding } from "../support/needs.ts";
import { failureOf, type Json } from "../support/plugin-site.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { expectSameInAgent } from "./annotations-in-agent.ts";

const POOLS = [
  poolChange("blue", "10.61.0.0/24"),
  poolChange("red", "10.62.0.0/24"),
  poolChange("elsewhere", "10.63.0.0/24", { nodeSelector: 'rack == "far"' }),
  poolChange("off", "10.64.0.0/24", { disabled: true }),
  poolChange("blue6", "fd61::/112"),
  poolChange("red6", "fd62::/112"),
  listChange("web", ["10.61.0.245"]),
  listChange("theirs", ["10.61.0.246"], "tenant == 'theirs'"),
  nodeChange("node-1"),
];

type Values = Partial<Record<AnnotationName, string>>;
const keyed = (values: Values) =>
  Object.fromEntries(Object.entries(values).map(([name, text]) => [annotationKey(name as AnnotationName), text]));

/** The agent decides the same on each datastore. */
const STORES_OF_AGENT = proofSize<readonly KubeSiteStore[]>({ everyDay: ["etcd"], soak: ["etcd", "orchestrator"] });

for (const { kind, problem } of KUBE_SITE_STORES) {
  describe(`annotations on ${kind}`, () => {
    const test = testNeeding(problem);
    let kube: KubeSite;
    beforeAll(async () => {
      if (problem === undefined) kube = await openKubeSite(kind, POOLS);
    });
    afterAll(() => kube?.[Symbol.asyncDispose]());

    const DUAL = { type: identity.ipamType, assign_ipv6: "true" };
    const SWITCHES = {
      feature_control: { ip_addrs_no_ipam: true, floating_ips: true, allowed_source_prefixes: true },
    };
    const podWith = (values: Values, namespace?: string) =>
      kube.makePod({ annotations: keyed(values), ...(namespace === undefined ? {} : { namespace }) });
    const addressesOf = async (pod: KubePod, more: Json = {}) =>
      (await kube.site.add(pod, kube.options(more))).ips.map(({ address }) => address);
    const remove = (pod: KubePod, more: Json = {}) => kube.site.quietly("DEL", pod, kube.options(more));
    /** The addresses of a pod that is deleted afterwards. */
    const assigned = async (values: Values, more: Json = {}, namespace?: string) => {
      const pod = await podWith(values, namespace);
      const addresses = await addressesOf(pod, more);
      await remove(pod, more);
      return addresses;
    };
    const networksOf = async (...given: Parameters<typeof assigned>) =>
      (await assigned(...given)).map((address) => /^(10\.\d+|fd\d+)/.exec(address)?.[0]);
    /** The error of an ADD, which names the pod. */
    const refusalOf = async (values: Values, more: Json = {}, namespace?: string) => {
      const pod = await podWith(values, namespace);
      const failure = failureOf(await kube.site.call("ADD", pod, kube.options(more)));
      expect(failure.msg).toContain(`pod "${pod.namespace}/${pod.name}"`);
      return failure;
    };
    const endpointOf = async ({ namespace, name }: KubePod) => {
      const entries = [...(await kube.site.store.list())];
      const [key, value] = entries.find(
        ([each]) => each.includes(`/workloadendpoints/${namespace}/`) && each.includes(name.replaceAll("-", "--")),
      ) ?? ["", ""];
      return workloadEndpoint.read(value, key);
    };

    const checkIpam = async () => {
      const { code, stdout, stderr } = await kube.site.host.run([builtProgram(identity.adminTool), "ipam", "check"], {
        environment: kube.adminEnvironment,
      });
      expect([code, stdout + stderr]).toEqual([0, expect.any(String)]);
    };

    test("choose pools: the pod's before its namespace's, before the config's, before node selectors", async () => {
      await kube.server.createNamespace("annotated");
      const annotations = { [annotationKey("ipv4pools")]: '["red"]', [annotationKey("ipv6pools")]: '["fd62::/112"]' };
      await kube.server.apply(
        JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "annotated", annotations } }),
      );
      const config = { ipam: { ...DUAL, ipv4_pools: ["blue"], ipv6_pools: ["blue6"] } };

      expect(await networksOf({}, config)).toEqual(["10.61", "fd61"]);
      expect(await networksOf({}, config, "annotated")).toEqual(["10.62", "fd62"]);
      expect(await networksOf({}, {}, "annotated")).toEqual(["10.62", "fd62"]);
      const ofPod = { ipv4pools: '["10.63.0.0/24"]' };
      expect(await networksOf(ofPod, config, "annotated")).toEqual(["10.63", "fd62"]);
      expect(await networksOf(ofPod, config)).toEqual(["10.63", "fd61"]);
      expect(await kube.site.left()).toEqual([]);
    });

    test("must name pools that exist, exactly, enabled and of the family", async () => {
      for (const [values, part] of [
        [{ ipv4pools: '["green"]' }, '"green"'],
        [{ ipv4pools: '["10.61.0.0/25"]' }, 'only a part of pool "blue"'],
        [{ ipv4pools: '["off"]' }, "disabled"],
        [{ ipv4pools: '["blue", "blue6"]' }, '"blue6"'],
        [{ ipv6pools: '["blue"]' }, '"blue"'],
      ] as const) {
        const { code, msg } = await refusalOf(values);
        expect([values, code, msg]).toEqual([values, 101, expect.stringContaining(part)]);
        expect(msg).toContain(`annotation "${annotationKey(Object.keys(values)[0] as AnnotationName)}"`);
      }
      expect(await kube.site.left()).toEqual([]);
    });

    test("are not the only source of pools: those in the config must exist too, exactly, enabled and of the family", async () => {
      for (const pool of ["green", "10.61.0.0/25", "off", "blue6"]) {
        const config = kube.options({ ipam: { type: identity.ipamType, ipv4_pools: [pool] } });
        const { code, msg } = failureOf(await kube.site.call("ADD", await kube.makePod(), config));
        expect([pool, code, msg]).toEqual([pool, 101, expect.stringContaining(`"${pool}"`)]);
      }
      expect(await kube.site.left()).toEqual([]);
    });

    test("of a namespace that cannot be used fail its pods, and name it", async () => {
      await kube.server.createNamespace("broken");
      const annotations = { [annotationKey("ipv4pools")]: '["green"]' };
      await kube.server.apply(
        JSON.stringify({ apiVersion: "v1", kind: "Namespace", metadata: { name: "broken", annotations } }),
      );

      const { code, msg } = await refusalOf({}, {}, "broken");
      expect([code, msg]).toEqual([101, expect.stringContaining('of namespace "broken"')]);
      expect(await networksOf({ ipv4pools: '["red"]' }, {}, "broken")).toEqual(["10.62", "fd61"]);
    });

    test("that are malformed are refused with the pod, the annotation, the value and the rule", async () => {
      for (const [values, rule] of [
        [{ ipAddrs: "10.61.0.9" }, "not a JSON array of strings"],
        [{ ipv4pools: "{}" }, "not a JSON array of strings"],
        [{ ipAddrs: "[]" }, "the list is empty"],
        [{ ipAddrs: '["10.61.0"]' }, "not an IP address"],
        [{ ipAddrs: '["10.61.0.9", "10.61.0.10"]' }, "two IPv4 addresses"],
        [{ ipAddrsNoIpam: '["fd61::9", "fd61::10"]' }, "two IPv6 addresses"],
        [{ ipv4pools: '["fd61::/112"]' }, "IPv4 pool"],
        [{ hwAddr: "x" }, "not a MAC address"],
        [{ allowedSourcePrefixes: '["10.0.0.5"]' }, "not a CIDR"],
        [{ allowedSourcePrefixes: "[]" }, "the list is empty"],
      ] as const) {
        const { code, msg } = await refusalOf(values, SWITCHES);
        expect([values, code, msg]).toEqual([values, 121, expect.stringContaining(rule)]);
        const [[name, text] = ["", ""]] = Object.entries(values);
        expect(msg).toContain(`annotation "${identity.annotationPrefix}${name}"`);
        expect(msg).toContain(JSON.stringify(text));
      }
      expect(await kube.site.left()).toEqual([]);
    });

    test("ask for addresses: the pod gets exactly these, before any pool, and releases them", async () => {
      const pools = { ipv4pools: '["red"]', ipv6pools: '["red6"]' };
      const config = { ipam: { ...DUAL, ipv4_pools: ["red"] } };

      expect(await assigned({ ipAddrs: '["10.61.0.40", "fd61::40"]' })).toEqual(["10.61.0.40/32", "fd61::40/128"]);
      expect(await assigned({ ipAddrs: '["10.61.0.40"]', ...pools }, config)).toEqual(["10.61.0.40/32"]);
      expect(await assigned({ ipAddrs: '["fd61::40"]' }, { ipam: { type: identity.ipamType } })).toEqual([
        "fd61::40/128",
      ]);
      expect(await assigned({ ipAddrs: '["10.63.0.40"]' })).toEqual(["10.63.0.40/32"]);
      expect(await kube.site.left()).toEqual([]);
    });

    test("with more values than the datastore records are refused, and nothing is assigned; with as many, all count", async () => {
      const floating = (count: number) =>
        JSON.stringify(Array.from({ length: count }, (_, index) => `10.61.0.${100 + index}`));
      const sources = (count: number) =>
        JSON.stringify(Array.from({ length: count }, (_, index) => `198.51.${index}.0/24`));
      // Only annotations of pods have a bound.
      const [count, refused] =
        kind === "etcd" ? [33, []] : [32, [{ floatingIPs: floating(33) }, { allowedSourcePrefixes: sources(33) }]];
      for (const values of refused) {
        const { code, msg } = await refusalOf(values, SWITCHES);
        expect([code, msg]).toEqual([121, expect.stringContaining("at most 32 are allowed: remove 1 of them")]);
      }
      expect(await kube.site.left()).toEqual([]);
      const pod = await podWith({ floatingIPs: floating(count), allowedSourcePrefixes: sources(count) });
      await kube.site.add(pod, kube.options(SWITCHES));
      const { spec } = await endpointOf(pod);
      expect([spec.ipNATs?.length, spec.allowSpoofedSourcePrefixes?.length]).toEqual([count, count]);
      await kube.site.quietly("DEL", pod, kube.options(SWITCHES));
    });

    test("ask for an address that another namespace has just released: refused with the time that it rests", async () => {
      await kube.server.createNamespace("others");
      await assigned({ ipAddrs: '["10.61.0.60"]' });

      expect(await refusalOf({ ipAddrs: '["10.61.0.60"]' }, {}, "others")).toMatchObject({
        code: 11,
        msg: expect.stringMatching(
          /"10\.61\.0\.60" \(.*ipAddrs.*: it was released by namespace ".*" and rests for another 1\d\d s/,
        ),
      });
      expect(await assigned({ ipAddrs: '["10.61.0.60"]' })).toEqual(["10.61.0.60/32"]);
    });

    test("take precedence over the address that the runtime requests", async () => {
      const pod = await podWith({ ipAddrs: '["10.61.0.41"]' });
      const asking = { ...pod, args: `${pod.args};IP=10.61.0.42` };
      const { stdout, stderr } = await kube.site.call("ADD", asking, kube.options());

      expect(JSON.parse(stdout).ips).toMatchObject([{ address: "10.61.0.41/32" }]);
      expect(stderr).toContain('"10.61.0.42" (IP of CNI_ARGS) has no effect');
      await remove(asking);

      const inPool = await podWith({ ipv4pools: '["red"]' });
      const failure = failureOf(
        await kube.site.call("ADD", { ...inPool, args: `${inPool.args};IP=10.61.0.42` }, kube.options()),
      );
      expect([failure.code, failure.msg]).toEqual([105, expect.stringContaining(annotationKey("ipv4pools"))]);
    });

    test("ask for an address that is outside all pools, or in use: refused, and obtained once it is free", async () => {
      const place = `annotation "${annotationKey("ipAddrs")}"`;
      for (const address of ["10.99.0.9", "10.64.0.9"]) {
        const { code, msg } = await refusalOf({ ipAddrs: `["${address}"]` });
        expect([code, msg]).toEqual([105, expect.stringContaining(place)]);
      }
      const first = await podWith({ ipAddrs: '["10.61.0.50"]' });
      await addressesOf(first);
      const second = await podWith({ ipAddrs: '["10.61.0.50"]' });
      const { code, msg } = failureOf(await kube.site.call("ADD", second, kube.options()));
      expect([code, msg]).toEqual([104, expect.stringContaining(place)]);
      expect(msg).toContain(`pod "${first.namespace}/${first.name}"`);

      await remove(first);
      expect(await addressesOf(second)).toEqual(["10.61.0.50/32"]);
      expect(await addressesOf(second)).toEqual(["10.61.0.50/32"]);
      await remove(second);
      expect(await kube.site.left()).toEqual([]);
    });

    test("for addresses with and without IPAM are refused together", async () => {
      const values = { ipAddrs: '["10.61.0.9"]', ipAddrsNoIpam: '["10.61.0.10"]' };
      const { code, msg } = await refusalOf(values, SWITCHES);

      expect([code, msg]).toEqual([121, expect.stringContaining("only one of the two is allowed")]);
    });

    test("whose switch is off are refused, and name the switch", async () => {
      for (const [values, field] of [
        [{ ipAddrsNoIpam: '["192.0.2.50"]' }, "feature_control.ip_addrs_no_ipam"],
        [{ floatingIPs: '["192.0.2.50"]' }, "feature_control.floating_ips"],
        [{ allowedSourcePrefixes: '["198.51.100.0/24"]' }, "feature_control.allowed_source_prefixes"],
      ] as const) {
        const off = { ip_addrs_no_ipam: false, floating_ips: false, allowed_source_prefixes: false };
        for (const more of [{}, { feature_control: off }]) {
          const { code, msg } = await refusalOf(values, more);
          expect([code, msg]).toEqual([121, expect.stringContaining(`"${field}"`)]);
        }
      }
      expect(await kube.site.left()).toEqual([]);
    });

    test("without IPAM: the pod has the address, IPAM does not record it, CHECK and ipam check accept it, DEL leaves nothing", async () => {
      const pod = await podWith({ ipAddrsNoIpam: '["10.61.0.60", "2001:db8:5::60"]', ipv4pools: '["red"]' });
      const { ips, ...result } = await kube.site.add(pod, kube.options(SWITCHES));
      expect(ips.map(({ address }) => address)).toEqual(["10.61.0.60/32", "2001:db8:5::60/128"]);
      const again = await kube.site.call("ADD", pod, kube.options(SWITCHES));
      expect(again.stderr.match(/\[WARNING\].*is not announced.*/g)).toEqual([
        expect.stringMatching(/"10\.61\.0\.60" .*: the node agent has not started BGP on this host;/),
        expect.stringMatching(/"2001:db8:5::60" .*: it is in no pool;/),
      ]);
      expect(await kube.site.inside(pod, ["ip", "-o", "address", "show", "dev", "eth0"])).toContain("10.61.0.60/32");
      await kube.site.host.must(["ping", "-c1", "-W2", "10.61.0.60"]);

      const { spec } = await endpointOf(pod);
      expect(spec.ipNetworks).toEqual(["10.61.0.60/32", "2001:db8:5::60/128"]);
      expect((await kube.site.left()).filter((line) => /taken|\/handle\//.test(line))).toEqual([]);
      await kube.site.quietly("CHECK", pod, kube.options({ ...SWITCHES, prevResult: { ips, ...result } }));
      await checkIpam();
      expect((await kube.site.add(pod, kube.options(SWITCHES))).ips).toEqual(ips);

      const other = await podWith({ ipAddrsNoIpam: '["10.61.0.60"]' });
      expect(failureOf(await kube.site.call("ADD", other, kube.options(SWITCHES))).msg).toContain("10.61.0.60");
      const ofHost = await refusalOf({ ipAddrsNoIpam: '["192.0.2.1"]' }, SWITCHES);
      expect([ofHost.code, ofHost.msg]).toEqual([104, expect.stringContaining("this host")]);

      await remove(pod, SWITCHES);
      expect(await kube.site.left()).toEqual([]);
    });

    test("without IPAM: GC removes the endpoint of a container that is gone", async () => {
      const pod = await podWith({ ipAddrsNoIpam: '["10.61.0.61"]' });
      await kube.site.add(pod, kube.options(SWITCHES));
      await kube.site.host.must(["ip", "netns", "delete", pod.netnsName]);

      await kube.site.quietly("GC", pod, kube.options({ ...SWITCHES, "cni.dev/valid-attachments": [] }));
      expect(await kube.site.left()).toEqual([]);
    });

    test("for floating IPs are recorded in the endpoint, each for the address of its family; those in no pool are reported", async () => {
      const pod = await podWith({ floatingIPs: '["10.62.0.70", "192.0.2.70", "fd62::70"]' });
      const { stdout, stderr } = await kube.site.call("ADD", pod, kube.options(SWITCHES));
      const [v4, v6] = (JSON.parse(stdout) as { ips: { address: string }[] }).ips.map(
        ({ address }) => address.split("/")[0] ?? "",
      );

      expect((await endpointOf(pod)).spec.ipNATs).toEqual([
        { internalIP: v4 ?? "", externalIP: "10.62.0.70" },
        { internalIP: v4 ?? "", externalIP: "192.0.2.70" },
        { internalIP: v6 ?? "", externalIP: "fd62::70" },
      ]);
      expect(stderr.match(/\[WARNING\].*is in no pool.*/g)).toEqual([expect.stringContaining('"192.0.2.70"')]);
      // A second ADD replaces them.
      await kube.site.add(pod, kube.options(SWITCHES));
      expect((await endpointOf(pod)).spec.ipNATs).toHaveLength(3);
      await remove(pod, SWITCHES);

      const only4 = { ...SWITCHES, ipam: { type: identity.ipamType } };
      const { code, msg } = await refusalOf({ floatingIPs: '["fd62::70"]' }, only4);
      expect([code, msg]).toEqual([121, expect.stringContaining("no IPv6 address")]);
      expect(await kube.site.left()).toEqual([]);
    });

    test("choose the MAC, before the runtime's", async () => {
      const made = await podWith({ hwAddr: "02:42:AC:11:00:07" });
      const pod = { ...made, args: `${made.args};MAC=02:42:ac:11:00:08` };
      const result = await kube.site.add(pod, kube.options());

      expect(await kube.site.inside(pod, ["ip", "link", "show", "eth0"])).toContain("link/ether 02:42:ac:11:00:07");
      // A pod of the orchestrator's API does not record it.
      if (kind === "etcd") expect((await endpointOf(pod)).spec.mac).toBe("02:42:ac:11:00:07");
      await kube.site.quietly("CHECK", pod, kube.options({ prevResult: result }));
      await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("for source prefixes are recorded in the endpoint, without host bits, until DEL", async () => {
      const pod = await podWith({ allowedSourcePrefixes: '["198.51.100.7/24", "2001:db8:7::/64"]' });
      const result = await kube.site.add(pod, kube.options(SWITCHES));

      const prefixes = ["198.51.100.0/24", "2001:db8:7::/64"];
      expect((await endpointOf(pod)).spec.allowSpoofedSourcePrefixes).toEqual(prefixes);
      await kube.site.quietly("CHECK", pod, kube.options({ ...SWITCHES, prevResult: result }));
      await remove(pod);
      expect(await kube.site.left()).toEqual([]);
      if (kind !== "orchestrator") return;
      const live = await kube.server.get<{ metadata: { annotations: Record<string, string> } }>(
        "pod",
        pod.name,
        "--namespace=shop",
      );
      expect(live.metadata.annotations[`${identity.annotationPrefix}allowSpoofedSourcePrefixes`]).toBe("");
    });

    test("for addresses and pools are refused with host-local; nothing is assigned", async () => {
      const hostLocal = { ...SWITCHES, ipam: { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }]] } };
      for (const values of [
        { ipAddrs: '["10.77.0.9"]' },
        { ipAddrsNoIpam: '["10.77.0.9"]' },
        { ipv4pools: '["blue"]' },
        { ipv6pools: '["blue6"]' },
      ] satisfies Values[]) {
        const { code, msg } = await refusalOf(values, hostLocal);
        expect([code, msg]).toEqual([121, expect.stringContaining('IPAM plugin "host-local"')]);
      }
      expect((await refusalOf({}, hostLocal, "annotated")).code).toBe(121);
      expect(await kube.site.left()).toEqual([]);
    });

    test("that are not known are reported", async () => {
      const pod = await kube.makePod({ annotations: { [`${identity.annotationPrefix}ipAddr`]: '["10.61.0.9"]' } });
      const { stderr } = await kube.site.call("ADD", pod, kube.options());
      await remove(pod);

      expect(stderr).toContain(`annotation "${identity.annotationPrefix}ipAddr"`);
    });

    // The API as the datastore is access to it.
    const testOnEtcd = kind === "etcd" ? test : () => {};
    testOnEtcd("are not read without access to the API", async () => {
      const pod = await podWith({ ipAddrs: '["10.61.0.80"]' });
      const { ips } = await kube.site.add(pod);
      expect(ips.map(({ address }) => address)).not.toContain("10.61.0.80/32");
      await kube.site.quietly("DEL", pod);
    });

    // The last one: from here on the agent does all calls.
    if (STORES_OF_AGENT.includes(kind)) test("have the same results in the node agent", () => expectSameInAgent(kube));
  });
}
