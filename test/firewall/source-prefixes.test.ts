/** A pod with the annotation `allowedSourcePrefixes` can send from these prefixes too, and from nothing else. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { NODE } from "../../src/model/kinds.ts";
import { annotationKey } from "../../src/plugin/annotations.ts";
import { launchAgent } from "../agent/agent.ts";
import { buildWithCrashPoints } from "../support/crash-build.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { KUBE_SITE_STORES, type KubePod, type KubeSite, openKubeSite } from "../support/kube-site.ts";
import { hearUdp, openUdpClient } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { failureOf, type Json } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const OTHER_NODE = "192.0.2.77";
const POOLS = [
  poolChange("blue", "10.61.0.0/24"),
  poolChange("blue6", "fd61::/112"),
  nodeChange("node-1"),
  {
    kind: "put",
    key: NODE.key({ name: "node-2" }),
    value: NODE.codec.write(NODE.codec.make({ name: "node-2" }, { bgp: { ipv4Address: `${OTHER_NODE}/24` } })),
  },
] as const;
const SWITCH_ON = { allowed_source_prefixes: true };
const ANNOTATION = annotationKey("allowedSourcePrefixes");
const BOTH = ["198.51.100.0/24", "198.51.100.128/25", "2001:db8:7::/64"];
const ALLOWED = ["198.51.100.9", "198.51.100.255", "2001:db8:7::9"];
/** With the number of the crash point. */
const MARKED = /^crash point (\d+) before mark the link of further sources$/m;
const FOREIGN = ["198.51.101.9", "203.0.113.9", "2001:db8:8::9", "192.0.2.1"];

/** They reach the rules through the endpoint, the same on each datastore. */
const STORES = proofSize({ everyDay: KUBE_SITE_STORES.filter(({ kind }) => kind === "etcd"), soak: KUBE_SITE_STORES });

for (const { kind, problem } of STORES) {
  describe(`a pod with source prefixes, on ${kind}`, () => {
    const needs = [problem, program("nft")];
    const test = testNeeding(...needs);
    let kube: KubeSite;
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      kube = await openKubeSite(kind, POOLS);
      await install(SWITCH_ON);
    });
    afterAll(() => kube?.[Symbol.asyncDispose]());

    const admin = (...words: readonly string[]) =>
      kube.site.host.run([builtProgram(identity.adminTool), ...words], { environment: kube.adminEnvironment });
    const options = (more: Json = {}) => kube.options({ feature_control: SWITCH_ON, ...more });
    /** Writes the network config, and what of it the tables depend on. */
    const install = async (features: Json, more: Json = {}) => {
      const { name, cniVersion, ...plugin } = kube.options({ feature_control: features, ...more }).config;
      const list = JSON.stringify({ name, cniVersion, plugins: [plugin] });
      kube.site.host.writeFile("/etc/cni/net.d/10-net.conflist", list);
      expect((await admin("node", "restore", "--name", "node-1")).stderr).toBe("");
    };
    /** For the agent, which follows the nodes: the role of the plugin does not allow it. */
    const installForAgent = () => {
      const { adminKubeconfig: kubeconfig } = kube.server;
      return install(SWITCH_ON, kind === "etcd" ? {} : { kubernetes: { kubeconfig } });
    };
    const allowed = async () => {
      const sets = ["allowed4", "allowed6"].map((set) => `list set inet ${identity.guardTable} ${set}`);
      return (await Promise.all(sets.map((set) => kube.site.host.must(["nft", set])))).join("");
    };
    const remove = (pod: KubePod) => kube.site.quietly("DEL", pod, kube.options());
    const makePod = (prefixes: readonly string[] = [], more: Readonly<Record<string, string>> = {}) =>
      kube.makePod({
        annotations: { ...(prefixes.length > 0 && { [ANNOTATION]: JSON.stringify(prefixes) }), ...more },
      });
    const attach = async (prefixes: readonly string[] = []) => {
      const pod = await makePod(prefixes);
      const result = await kube.site.add(pod, options());
      const [own4 = "", own6 = ""] = result.ips.map(({ address }) => address.split("/")[0] ?? "");
      await kube.site.inside(pod, ["ip", "link", "set", "lo", "up"]);
      return { pod, result, own4, own6, netns: kube.site.host.view(pod.netns), link: result.interfaces[0]?.name ?? "" };
    };
    type Attached = Awaited<ReturnType<typeof attach>>;
    /** Which of the sources arrive at the receiver. */
    const arriving = async (sender: Attached, receiver: Attached, sources: readonly string[]) => {
      const commands = sources
        .filter((address) => address !== sender.own4 && address !== sender.own6)
        .map((address) => `ip address replace ${address} dev lo ${address.includes(":") ? "nodad" : ""}`);
      await kube.site.inside(sender.pod, ["sh", "-ec", commands.join("\n")]);
      using listener = await hearUdp(receiver.netns, 53);
      await Promise.all(
        sources.map(async (source) => {
          using client = await openUdpClient(sender.netns, source);
          await client.ask(source.includes(":") ? receiver.own6 : receiver.own4, 53);
        }),
      );
      return [...new Set(listener.senders)].sort();
    };
    const reversePath = async ({ link }: Attached) =>
      (await kube.site.host.must(["cat", `/proc/sys/net/ipv4/conf/${link}/rp_filter`])).trim();
    const check = ({ pod, result }: Attached) =>
      kube.site.call("CHECK", pod, options({ prevResult: result as unknown as Record<string, unknown> }));

    test("reaches others from them and from its own addresses, from no other's; DEL removes everything", async () => {
      const [plain, receiver, sender] = [await attach(), await attach(), await attach(BOTH)];
      const own = [sender.own4, sender.own6];
      expect(await arriving(sender, receiver, [...own, ...ALLOWED, ...FOREIGN, plain.own4, plain.own6])).toEqual(
        [...own, ...ALLOWED].sort(),
      );
      expect(await arriving(plain, receiver, [plain.own4, plain.own6, ...ALLOWED])).toEqual(
        [plain.own4, plain.own6].sort(),
      );
      expect([await reversePath(sender), await reversePath(plain)]).toEqual(["0", "1"]);
      expect((await check(sender)).code).toBe(0);
      expect((await check(plain)).code).toBe(0);
      const { stdout } = await admin("get", "workloadendpoint", "--namespace", "shop", "-o", "yaml");
      expect(stdout).toMatch(
        /allowSpoofedSourcePrefixes:\s+- "?198\.51\.100\.0\/24"?\s+- "?198\.51\.100\.128\/25"?\s+- "?2001:db8:7::\/64/,
      );
      expect((await admin("node", "check")).stdout).toContain("1 container may also send from other prefixes");

      for (const { pod } of [sender, plain, receiver]) await remove(pod);
      expect(await allowed()).not.toContain("elements");
      expect(await kube.site.left()).toEqual([]);
    });

    test("loses them if another program flushes the tables, until the node is restored", async () => {
      const [receiver, sender] = [await attach(), await attach(BOTH)];
      await kube.site.host.must(["nft", "flush ruleset"]);
      // The rules come back with any ADD: what is allowed is not known to it, and stays dropped.
      const plain = await attach();
      expect(await arriving(sender, receiver, [sender.own4, ...ALLOWED, ...FOREIGN])).toEqual([sender.own4]);
      const lost = await admin("node", "check");
      expect([lost.code, lost.stdout]).toEqual([1, expect.stringContaining(`for example by ${sender.link}`)]);
      expect(failureOf(await check(sender)).msg).toContain("does not allow source 198.51.100.0-198.51.100.255");

      for (const flush of [false, true]) {
        if (flush) await kube.site.host.must(["nft", "flush ruleset"]);
        expect((await admin("node", "restore", "--name", "node-1")).stdout).toContain(identity.guardTable);
        expect((await admin("node", "restore", "--name", "node-1")).stdout).toContain("up to date");
        expect(await arriving(sender, receiver, [...ALLOWED, ...FOREIGN])).toEqual([...ALLOWED].sort());
        expect((await check(sender)).code).toBe(0);
      }
      expect((await admin("node", "check")).stdout).toContain("1 container may also send from other prefixes");
      for (const { pod } of [sender, plain, receiver]) await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("is refused while the switch is off, and one that runs loses them", async () => {
      const [receiver, sender] = [await attach(), await attach(BOTH)];
      for (const off of [{}, { feature_control: { allowed_source_prefixes: false } }]) {
        const { code, msg } = failureOf(await kube.site.call("ADD", await makePod(BOTH), kube.options(off)));
        expect([code, msg]).toEqual([121, expect.stringContaining('"feature_control.allowed_source_prefixes"')]);
      }
      expect(await arriving(sender, receiver, ALLOWED)).toEqual([...ALLOWED].sort());

      await install({});
      expect(await arriving(sender, receiver, [sender.own4, ...ALLOWED, ...FOREIGN])).toEqual([sender.own4]);
      expect((await admin("node", "check")).stdout).toContain("of the network config is not true");
      const result = sender.result as unknown as Record<string, unknown>;
      await kube.site.quietly("CHECK", sender.pod, kube.options({ prevResult: result }));
      await install(SWITCH_ON);
      expect(await arriving(sender, receiver, ALLOWED)).toEqual([...ALLOWED].sort());
      for (const { pod } of [sender, receiver]) await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("may not send from addresses of pools and nodes, unless the administrator lists them", async () => {
      const [other, receiver, sender] = [await attach(), await attach(), await attach(["0.0.0.0/0", "::/0"])];
      // On the orchestrator's API the nodes are the cluster's own, and this one does not exist.
      const ofNode = kind === "etcd" ? [OTHER_NODE] : [];
      const ofCluster = [other.own4, other.own6, "10.61.0.200", ...ofNode];
      expect(await arriving(sender, receiver, [...ofCluster, ...ALLOWED])).toEqual([...ALLOWED].sort());

      await install({ ...SWITCH_ON, cluster_source_prefixes: ["10.61.0.200/32", "192.0.2.64/26"] });
      expect(await arriving(sender, receiver, [...ofCluster, ...ALLOWED])).toEqual(
        ["10.61.0.200", ...ofNode, ...ALLOWED].sort(),
      );
      expect(await arriving(other, receiver, [other.own4, "10.61.0.200"])).toEqual([other.own4]);
      await install(SWITCH_ON);
      expect(await arriving(sender, receiver, ofCluster)).toEqual([]);
      for (const { pod } of [other, sender, receiver]) await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("may not send from a pool that is created later, or a node that joins, as soon as the agent knows it", async () => {
      const [receiver, sender] = [await attach(), await attach(["0.0.0.0/0"])];
      const [ofPool, ofNode] = ["203.0.113.9", "198.18.0.9"];
      await installForAgent();
      const agent = launchAgent(kube.site.host);
      await pollUntil(() => agent.log().includes("Network policy"), "the agent to follow the datastore");
      expect(await arriving(sender, receiver, [ofPool, ofNode])).toEqual([ofNode, ofPool].sort());

      const later = NODE.codec.make({ name: "node-3" }, { bgp: { ipv4Address: `${ofNode}/24` } });
      const pool = poolChange("later", "203.0.113.0/24");
      const node = { kind: "put", key: NODE.key({ name: "node-3" }), value: NODE.codec.write(later) } as const;
      const isOwnRecord = kind === "etcd";
      await kube.site.store.put(isOwnRecord ? [pool, node] : [pool]);
      const both = isOwnRecord ? [ofPool, ofNode] : [ofPool];
      await pollUntil(async () => (await arriving(sender, receiver, both)).length === 0, "the agent to exclude them");
      await agent.signal("TERM");
      await agent.ended;
      for (const { key } of isOwnRecord ? [pool, node] : [pool]) await kube.site.store.remove(key);
      for (const { pod } of [sender, receiver]) await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("gets them back from the node agent when it starts", async () => {
      const [receiver, sender] = [await attach(), await attach(BOTH)];
      await installForAgent();
      await kube.site.host.must(["nft", "flush ruleset"]);
      const agent = launchAgent(kube.site.host);
      const allowed = ["nft", `list set inet ${identity.guardTable} allowed4`];
      await pollUntil(
        async () => (await kube.site.host.run(allowed)).stdout.includes("198.51.100"),
        "the agent to allow the sources",
      );
      await pollUntil(
        () => agent.log().includes("excluded those of pools and nodes"),
        "the agent to exclude addresses",
      );
      await agent.signal("TERM");
      await agent.ended;

      expect(await arriving(sender, receiver, [...ALLOWED, ...FOREIGN])).toEqual([...ALLOWED].sort());
      for (const { pod } of [sender, receiver]) await remove(pod);
      expect(await kube.site.left()).toEqual([]);
    });

    test("has those of the last ADD: a repeated one changes or withdraws them", async () => {
      const [receiver, sender] = [await attach(), await attach(BOTH)];
      const annotate = (value: string) =>
        kube.server.kubectl(["annotate", "--overwrite", "pod", sender.pod.name, "--namespace=shop", value]);
      await annotate(`${ANNOTATION}=["198.51.0.0/16"]`);
      // A running pod keeps what it has.
      expect(await arriving(sender, receiver, ["2001:db8:7::9", "198.51.101.9"])).toEqual(["2001:db8:7::9"]);
      await kube.site.add(sender.pod, options());
      expect(await arriving(sender, receiver, [...ALLOWED, ...FOREIGN])).toEqual([
        "198.51.100.255",
        "198.51.100.9",
        "198.51.101.9",
      ]);

      await annotate(`${ANNOTATION}-`);
      await kube.site.add(sender.pod, options());
      expect(await arriving(sender, receiver, [sender.own4, ...ALLOWED, ...FOREIGN])).toEqual([sender.own4]);
      expect([await reversePath(sender), (await check(sender)).code]).toEqual(["1", 0]);
      expect(await allowed()).not.toContain("elements");
      for (const { pod } of [sender, receiver]) await remove(pod);
    });

    test("has a marked link before they are allowed, also if the ADD that created it was killed", async () => {
      const build = buildWithCrashPoints();
      const add = (pod: KubePod, fault: string) =>
        kube.site.call("ADD", pod, {
          ...options(),
          program: build.program,
          environment: { CNI_PATH: build.directory, [`${identity.environmentPrefix}FAULT`]: fault },
        });
      const sample = await makePod(BOTH);
      const [, point = ""] = MARKED.exec((await add(sample, "list")).stderr) ?? [];
      const pod = await makePod(BOTH);
      await add(pod, point);
      const { code, stderr } = await add(pod, "list");
      build.remove();

      expect([code, MARKED.test(stderr)]).toEqual([0, true]);
      for (const each of [sample, pod]) await remove(each);
    });

    test("of IPv6 only keeps the reverse path filter of IPv4; every source is allowed if the list says so", async () => {
      const [receiver, six, all] = [
        await attach(),
        await attach(["2001:db8:7::/64"]),
        await attach(["0.0.0.0/0", "::/0"]),
      ];
      expect([await reversePath(six), await reversePath(all)]).toEqual(["1", "0"]);
      expect(await arriving(six, receiver, [...ALLOWED, ...FOREIGN])).toEqual(["2001:db8:7::9"]);
      // Not from an address of the host itself: the kernel drops that.
      expect(await arriving(all, receiver, [...ALLOWED, ...FOREIGN])).toEqual(
        [...ALLOWED, ...FOREIGN].filter((source) => source !== "192.0.2.1").sort(),
      );
      for (const { pod } of [six, all, receiver]) await remove(pod);
    });

    test("leaves nothing in the table if its ADD fails, or if GC finds it gone", async () => {
      await kube.site.host.must(["ip", "link", "add", "other", "type", "veth", "peer", "name", "peer"]);
      await kube.site.host.must(["ip", "link", "set", "other", "up"]);
      const failing = await makePod(BOTH, { [annotationKey("ipAddrs")]: '["10.61.0.99", "fd61::99"]' });
      await kube.site.host.must(["ip", "route", "add", "10.61.0.99/32", "dev", "other"]);
      const { msg } = failureOf(await kube.site.call("ADD", failing, options()));
      await kube.site.host.must(["ip", "link", "delete", "other"]);
      expect([msg, await allowed()]).toEqual([
        expect.stringContaining("10.61.0.99"),
        expect.not.stringContaining("elements"),
      ]);

      const gone = await attach(BOTH);
      expect(await allowed()).toContain("elements");
      await kube.site.host.must(["ip", "netns", "delete", gone.pod.netnsName]);
      await kube.site.quietly("GC", gone.pod, kube.options({ "cni.dev/valid-attachments": [] }));
      expect([await kube.site.left(), await allowed()]).toEqual([[], expect.not.stringContaining("elements")]);
    });

    test("is removed by DEL also if its links are gone already", async () => {
      const gone = await attach(BOTH);
      await kube.site.host.must(["ip", "link", "delete", gone.link]);
      await remove(gone.pod);
      expect([await kube.site.left(), await allowed()]).toEqual([[], expect.not.stringContaining("elements")]);
    });

    test("is refused on a host whose kernel would drop the packets, and without an address of the family", async () => {
      const all = "/proc/sys/net/ipv4/conf/all/rp_filter";
      await kube.site.host.must(["sh", "-c", `echo 1 > ${all}`]);
      const strict = failureOf(await kube.site.call("ADD", await makePod(BOTH), options()));
      await kube.site.host.must(["sh", "-c", `echo 0 > ${all}`]);
      expect([strict.msg, strict.details]).toEqual([
        expect.stringContaining(`annotation "${ANNOTATION}"`),
        expect.stringContaining("sysctl -w net.ipv4.conf.all.rp_filter=0"),
      ]);

      const only4 = options({ ipam: { type: identity.ipamType } });
      const family = failureOf(await kube.site.call("ADD", await makePod(BOTH), only4));
      expect([family.code, family.msg]).toEqual([121, expect.stringContaining("no IPv6 address")]);
      expect(await kube.site.left()).toEqual([]);
    });
  });
}
