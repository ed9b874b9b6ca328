/**
 * The node agent beside another networking plugin: upstream's ptp connects the pods, the agent enforces policy at their
 * interfaces, and touches no route, no tunnel and no NAT.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { endpointLabels } from "../../src/model/endpoint-labels.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { networkPolicy } from "../../src/model/network-policy.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { profile } from "../../src/model/profile.ts";
import { workloadEndpoint } from "../../src/model/workload-endpoint.ts";
import { type Agent, launchAgent } from "../agent/agent.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { nodeChange, poolChange } from "../support/ipam.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { upstreamPlugins } from "../support/network-under-test.ts";
import { openPluginSite, type PluginSite, type Pod } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const KINDS = proofSize({ everyDay: ["etcd"] as const, soak: ["etcd", "embedded"] as const });
const PORT = 8080;
const CLIENT = "10.77.0.5";
const SERVER = "10.77.0.6";
const CONFIGURATION = resourceKey("nodeagentconfigurations", { name: "default" });
const POLICY = resourceKey("networkpolicies", { namespace: "default", name: "server" });
const PLACE = { namespace: "default", orchestrator: "k8s" };
const upstream = await upstreamPlugins();

const endpointKey = (name: string) => ENDPOINT.key({ namespace: "default", name: `node--1-k8s-${name}-eth0` });

/** As the agent records it from the orchestrator's pod. */
function endpoint(name: string, address: string) {
  const value = workloadEndpoint.make(
    { name: `node--1-k8s-${name}-eth0`, namespace: "default", labels: endpointLabels({ app: name }, PLACE) },
    {
      ...{ node: "node-1", orchestrator: "k8s", pod: name, endpoint: "eth0", profiles: ["open"] },
      ipNetworks: [`${address}/32`],
    },
  );
  return { kind: "put", key: endpointKey(name), value: workloadEndpoint.write(value) } as const;
}

/** For the pod `server`. */
function policy(spec: Parameters<typeof networkPolicy.make>[1]) {
  const value = networkPolicy.make({ name: "server", namespace: "default" }, { ...spec, selector: "app == 'server'" });
  return { kind: "put", key: POLICY, value: networkPolicy.write(value) } as const;
}

for (const kind of KINDS) {
  describe(`an agent beside upstream's ptp, on ${kind}`, () => {
    const needs = [
      hostProblem(),
      program("nft"),
      kind === "etcd" && !hasEtcd ? "needs etcd" : undefined,
      "missing" in upstream ? upstream.missing : undefined,
    ];
    const test = testNeeding(...needs);
    const directory = "path" in upstream ? upstream.path : "";
    let site: PluginSite;
    let agent: Agent;
    let client: Pod;
    let server: Pod;
    let listener: Disposable;
    let untouched: string;

    const call = async (command: "ADD" | "DEL", pod: Pod, address: string) => {
      const ipam = { type: "host-local", ranges: [[{ subnet: "10.77.0.0/24" }]], routes: [{ dst: "0.0.0.0/0" }] };
      const args = { cni: { ips: [address] } };
      const { code, stdout } = await site.call(command, pod, {
        program: join(directory, "ptp"),
        config: { cniVersion: "1.0.0", name: "other", type: "ptp", ipam, args },
        environment: { CNI_PATH: directory },
      });
      if (code !== 0) throw new Error(`${command}: ${stdout}`);
    };
    const attach = async (address: string) => {
      const pod = await site.makePod();
      await call("ADD", pod, address);
      return pod;
    };
    const configure = async (spec: NodeAgentConfigurationSpec) => {
      const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
      await site.store.put([{ kind: "put", key: CONFIGURATION, value }]);
    };
    const connection = async (from = client) =>
      (await askTcp(site.host.view(from.netns), SERVER, PORT)).split(" ")[0] ?? "";
    const until = (wanted: string) => pollUntil(async () => (await connection()) === wanted, `connections: ${wanted}`);
    const shell = (...command: readonly string[]) => site.host.must(command);
    /** All that is not policy. Addresses of pods come and go with them. */
    const network = async () => {
      const routes = (await shell("ip", "route", "show", "table", "all")).split("\n");
      const tables = (await shell("nft", "list", "tables"))
        .split("\n")
        .filter((line) => !line.includes(identity.policyTable));
      const links = (await shell("ip", "-o", "link")).split("\n").flatMap((line) => line.split(": ")[1] ?? []);
      return [
        // The kernel adds link-local ones late.
        ...routes.filter((line) => !/veth|fe80:|ff00:/.test(line)),
        ...links.filter((name) => !name.startsWith("veth")),
        ...tables,
      ].join("\n");
    };
    const statusFiles = () => {
      const folder = site.host.view(`${identity.runDirectory.replace(/^\/var\/run/, "/run")}/endpoint-status`);
      const names = existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith("k8s")) : [];
      return names.map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")).ifaceName as string);
    };

    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      const tunnelled = poolChange("blue", "10.50.0.0/16", { vxlanMode: "Always", natOutgoing: true });
      site = await openPluginSite(kind, [tunnelled, nodeChange("node-1"), nodeChange("node-2")]);
      await shell("ip", "link", "add", "up0", "type", "veth", "peer", "name", "up1");
      await shell("ip", "link", "set", "up1", "up");
      await shell("ip", "link", "set", "up0", "up");
      await shell("ip", "address", "add", "192.0.2.9/24", "dev", "up0");
      await shell("ip", "route", "add", "default", "via", "192.0.2.254", "dev", "up0");
      [client, server] = [await attach(CLIENT), await attach(SERVER)];
      listener = serveTcp(site.host.view(server.netns), "server", PORT);
      const open = profile.make(
        { name: "open" },
        { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }], labelsToApply: {} },
      );
      await site.store.put([
        { kind: "put", key: resourceKey("profiles", { name: "open" }), value: profile.write(open) },
      ]);
      const { name, cniVersion, ...plugin } = site.config({ policy: { type: "k8s" } });
      const conflist = JSON.stringify({ name, cniVersion, plugins: [plugin] });
      site.host.writeFile(`${identity.stateDirectory}/agent.conflist`, conflist);
      site.host.writeFile(
        "/etc/cni/net.d/10-other.conflist",
        JSON.stringify({ name: "other", cniVersion, plugins: [{ type: "ptp" }] }),
      );
      untouched = await network();
      await configure({ interfacePrefix: "veth", routing: "Disabled" });
    });
    afterAll(async () => {
      listener?.[Symbol.dispose]();
      await site?.[Symbol.asyncDispose]();
    });

    test("closes interfaces with the prefix until it knows their pods", async () => {
      expect(await connection()).toBe("server");
      agent = launchAgent(site.host);
      await pollUntil(() => agent.log().includes("Network policy: enforced"), "the agent to enforce policy");
      await until("silence");

      await site.store.put([endpoint("client", CLIENT)]);
      await site.store.put([endpoint("server", SERVER)]);
      await until("server");
      await pollUntil(() => statusFiles().length === 2, "the status of both pods");
      expect(statusFiles().every((name) => name.startsWith("veth"))).toBe(true);
    });

    test("enforces policy for ingress and egress", async () => {
      const allowed = { action: "Allow" as const, source: { selector: "app == 'client'" } };
      await site.store.put([policy({ tier: "default", types: ["Ingress"] })]);
      await until("silence");
      await site.store.put([policy({ tier: "default", types: ["Ingress"], ingress: [allowed] })]);
      await until("server");
      const egress = networkPolicy.make(
        { name: "client", namespace: "default" },
        { tier: "default", selector: "app == 'client'", types: ["Egress"] },
      );
      const key = resourceKey("networkpolicies", { namespace: "default", name: "client" });
      await site.store.put([{ kind: "put", key, value: networkPolicy.write(egress) }]);
      await until("silence");
      await site.store.remove(key);
      await until("server");
    });

    test("follows a pod to another interface with the same address, and keeps its policy", async () => {
      listener[Symbol.dispose]();
      await call("DEL", server, SERVER);
      server = await attach(SERVER);
      listener = serveTcp(site.host.view(server.netns), "server", PORT);
      await until("server");
      const stranger = await attach("10.77.0.7");
      expect(await connection(stranger)).toBe("silence");
      await site.store.put([endpoint("stranger", "10.77.0.7")]);
      await pollUntil(() => statusFiles().length === 3, "the status of the third pod");
      expect(await connection(stranger)).toBe("silence");
      await call("DEL", stranger, "10.77.0.7");
      await site.store.remove(endpointKey("stranger"));
    });

    test("explains a decision without an interface that it does not know", async () => {
      const explain = [builtProgram(identity.adminTool), "policy", "explain", "--from", "default/client"];
      const text = await shell(...explain, "--to", "default/server", "--port", String(PORT));
      expect(text).toMatch(/Verdict: +allowed/);
      expect(text).not.toContain(`${identity.interfacePrefix}0`);
      expect(text).not.toContain("undefined");
    });

    test("has changed no route, link or table of others", async () => {
      await shell(builtProgram(identity.adminTool), "node", "restore");
      expect(await network()).toBe(untouched);
    });

    test("sets routes, tunnels and NAT if routing is enabled, and removes all of it when it is disabled again", async () => {
      await configure({ interfacePrefix: "veth" });
      const isRouting = async () => {
        const now = await network();
        return now.includes(identity.natTable) && (kind === "embedded" || now.includes(identity.vxlanDevice));
      };
      await pollUntil(isRouting, "routing");
      await configure({ interfacePrefix: "veth", routing: "Disabled" });
      await pollUntil(async () => (await network()) === untouched, "nothing but policy");
      expect(await connection()).toBe("server");
    });

    test("names a pod whose interface has another prefix, and a prefix that the host's own interface has", async () => {
      await configure({ interfacePrefix: "lxc,up", routing: "Disabled" });
      await pollUntil(() => /"interfacePrefix" is not followed .*: .* up0/.test(agent.log()), "the error");
      await pollUntil(() => /Pod default\/server .* has no policy: .*"veth\w+"/.test(agent.log()), "the warning");
      await agent.signal("TERM");
      expect(await agent.ended).toBe(0);
    });
  });
}
