/** The node agent keeps the records of its node up to date on a real API server, under the plugin's role. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { AGENT_VERSION_ANNOTATION } from "../../src/model/agent-version-annotation.ts";
import { VERSION } from "../../src/version.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { podOptions } from "../agent/pod.ts";
import { bootNow } from "../support/boot-time.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import type { AuditedRequest } from "../support/kube-audit.ts";
import { type KubePod, type KubeSite, NODE, openKubeSite } from "../support/kube-store-site.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden, isStreamedList } from "../support/role-use.ts";

const problem = hostProblem() ?? apiServerProblem();
const testSite = testNeeding(problem);
/** Beside that of the plugin, whose account the agent has. */
const ROLES = join(import.meta.dir, `../../deploy/rbac/${identity.nodeAgent}-kubernetes.yaml`);
const MACHINE = "0123456789abcdef0123456789abcdef";

let site: KubeSite;
beforeAll(async () => {
  if (problem !== undefined) return;
  site = await openKubeSite();
  site.host.writeFile(`${identity.stateDirectory}/machine-id`, `${MACHINE}\n`);
  const { name, cniVersion, ...plugin } = site.config();
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
}, 60_000);
afterAll(() => site?.[Symbol.asyncDispose]());

interface ClusterNode {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>>; readonly resourceVersion: string };
}

const nodeOfCluster = () => site.server.get<ClusterNode>("node", NODE);
const handles = () => site.server.kubectl(["get", "ipamhandles", "--output=name"]);

describe("the upkeep by the node agent with the orchestrator's API as the datastore", () => {
  testSite(
    "says how to register a node of which neither its kubelet nor anybody else recorded the machine",
    async () => {
      const agent = await startAgent(site.host);
      await pollUntil(() => agent.log().includes("[ERROR]"), "the agent to say that the node is not registered");

      expect(agent.log()).toContain(`no machine has registered node "${NODE}"`);
      expect(agent.log()).toContain("node register --kubeconfig /etc/kubernetes/kubelet.conf");
      await stop(agent);
    },
  );

  testSite(
    "knows the machine from the kubelet's report: releases leaked addresses, and does not write to the Node",
    async () => {
      const pod = await leakedPod("leaked");
      await reportMachine(MACHINE);
      const before = await nodeOfCluster();
      const agent = await startAgent(site.host);
      await pollUntil(() => agent.log().includes("released "), "the agent to release the leaked address");

      expect(agent.log()).not.toContain("[ERROR]");
      expect(await handles()).not.toContain(pod.containerId);
      expect((await nodeOfCluster()).metadata).toMatchObject(before.metadata);
      expect(Object.keys(before.metadata.annotations ?? {}).filter((each) => each.startsWith("vendor.org/"))).toEqual(
        [],
      );
      await stop(agent);
    },
  );

  testSite("releases nothing if the kubelet reported another machine", async () => {
    const pod = await leakedPod("of-other");
    await reportMachine("fedcba9876543210fedcba9876543210");
    const agent = await startAgent(site.host);
    await pollUntil(() => agent.log().includes("[ERROR]"), "the agent to say that the node is not registered");

    expect(agent.log()).toContain(`no machine has registered node "${NODE}"`);
    expect(await handles()).toContain(pod.containerId);
    await stop(agent);
    await site.del(pod);
  });
});

describe("the release of the node agent", () => {
  testSite(
    "is on its Node, and the version of the cluster when all nodes have it, if its role allows that",
    async () => {
      const field = `${identity.product}Version`;
      const clusterVersion = () =>
        site.server.kubectl(["get", "clusterinformations", "default", `--output=jsonpath={.spec.${field}}`]);
      await reportMachine(MACHINE);
      await site.server.kubectl([
        "patch",
        "clusterinformations",
        "default",
        "--type=merge",
        `--patch={"spec":{"${field}":"v0.0.1"}}`,
      ]);
      await site.server.apply(await Bun.file(ROLES).text());
      await site.server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-2" } }));
      const first = await startAgent(site.host);
      await pollUntil(() => first.log().includes(`node/${NODE} updated`), "the agent to record its release");
      expect((await nodeOfCluster()).metadata.annotations).toMatchObject({ [AGENT_VERSION_ANNOTATION]: VERSION });
      expect(await clusterVersion()).toBe("v0.0.1");
      await stop(first);

      await site.server.kubectl(["delete", "node", "node-2"]);
      const second = await startAgent(site.host);
      await pollUntil(async () => (await clusterVersion()) === VERSION, "the agent to raise the version");
      expect(second.log()).not.toContain("[ERROR]");
      await stop(second);
    },
  );
});

describe("the node agent under its role", () => {
  testSite("restores the routes of its pods", async () => {
    await site.server.apply(await Bun.file(ROLES).text());
    const pod = await site.makePod("routed");
    const addresses = (await site.add(pod)).map((text) => text.split("/")[0] ?? "");
    const routes = (address: string) =>
      site.host.must(["ip", address.includes(":") ? "-6" : "-4", "route", "show", address]);
    const links = await Promise.all(addresses.map(async (address) => / dev (\S+)/.exec(await routes(address))?.[1]));
    const agent = await startAgent(site.host);
    for (const address of addresses) await site.host.must(["ip", "route", "del", address]);
    for (const [index, address] of addresses.entries()) {
      await pollUntil(async () => (await routes(address)).includes(` dev ${links[index]} `), `a route to ${address}`);
    }
    await stop(agent);
    await site.del(pod);
  });

  testSite("records addresses and tunnel addresses on its Node, and follows changes", async () => {
    await site.server.apply(await Bun.file(ROLES).text());
    await reportMachine(MACHINE);
    await run(
      "ip link add eth0 type veth peer name eth0-peer; ip link set eth0-peer up; ip link set eth0 up; ip addr add 198.51.100.5/24 dev eth0",
    );
    const audit = site.server.startAudit();
    const agent = await startAgent(site.host);
    const until = (what: string, holds: (spec: RecordedSpec) => boolean) =>
      pollUntil(async () => holds(await recordedSpec()), what, 5_000);
    await until("the address", ({ bgp }) => bgp?.ipv4Address === "198.51.100.5/24");
    await run("ip addr add 198.51.100.6/25 dev eth0; ip addr del 198.51.100.5/24 dev eth0");
    await until("the new address", ({ bgp }) => bgp?.ipv4Address === "198.51.100.6/25");
    await setMode("Always");
    await until("a tunnel address", (spec) => spec.ipv4VXLANTunnelAddr?.startsWith("10.60.") === true);
    expect(await handles()).toContain(`vxlan-tunnel-addr-${NODE}`);
    await setMode("Never");
    await until("no tunnel address", (spec) => spec.ipv4VXLANTunnelAddr === undefined);
    await pollUntil(async () => !(await handles()).includes("tunnel"), "the address to be released");

    expect(audit.requests(site.user).filter(isForbidden)).toEqual([]);
    // Not older than what the agents before have seen.
    const isListOfNodes = (request: AuditedRequest) => isStreamedList(request) && request.resource === "nodes";
    expect(audit.requests(site.user).find(isListOfNodes)?.uri).toMatch(/[?&]resourceVersion=[1-9]/);
    expect(await nodeOfCluster()).toMatchObject({ metadata: { labels: { zone: "a" } } });
    await stop(agent);
  });
});

describe("the node agent of a network with host-local", () => {
  testSite("records the range of its Node, once the orchestrator has assigned one", async () => {
    await site.server.apply(await Bun.file(ROLES).text());
    await reportMachine(MACHINE);
    const { name, cniVersion, ...plugin } = site.config({ ipam: { type: "host-local", subnet: "usePodCidr" } });
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    const agent = await startAgent(site.host);
    const ranges = ["10.244.3.0/24", "fd00:10:244:3::/64"];
    const patch = JSON.stringify({ spec: { podCIDR: ranges[0], podCIDRs: ranges } });
    await site.server.kubectl(["patch", "node", NODE, "--type=merge", `--patch=${patch}`]);
    await pollUntil(async () => Bun.deepEquals((await recordedSpec()).podCIDRs, ranges.slice(0, 1)), "the range");
    await stop(agent);
  });
});

describe("the node agent in a pod", () => {
  testSite("uses the account of its pod, while the calls that it serves use that of the network config", async () => {
    await reportMachine(MACHINE);
    const roles = await Bun.file(ROLES).text();
    const ofAgent = (text: string) => text.replaceAll(` name: ${identity.product}\n`, ` name: ${identity.nodeAgent}\n`);
    const account = await site.server.serviceAccount({
      name: identity.nodeAgent,
      clusterRole: `${identity.product}-kubernetes`,
    });
    await site.server.apply(ofAgent(roles));
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    await site.server.kubectl(["annotate", "node", NODE, `${AGENT_VERSION_ANNOTATION}-`]);
    const audit = site.server.startAudit();
    const { hostname, port } = new URL(site.server.url);
    const directory = "/var/run/secrets/kubernetes.io/serviceaccount";
    const agent = await startAgent(site.host, {
      ...podOptions("host's processes", {
        files: {
          [`${directory}/token`]: account.token,
          [`${directory}/ca.crt`]: readFileSync(site.server.credentials.authority.cert, "utf8"),
        },
      }),
      environment: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port },
    });
    const verbsOf = (user: string) => Object.keys(audit.counts(user));
    await pollUntil(() => verbsOf(account.user).includes("watch networkpolicies"), "the loops to follow policies");
    await pollUntil(() => agent.log().includes(`node/${NODE} updated`), "the upkeep to record the release");
    expect(verbsOf(site.user)).toEqual([]);

    const pod = await site.makePod("served");
    await site.add(pod);
    await site.del(pod);
    expect(await agent.hasServed(2)).toHaveLength(2);
    expect(verbsOf(site.user)).toContain("patch pods/status");
    expect(audit.requests().filter(isForbidden)).toEqual([]);

    const kubeconfig = site.host.must(["cat", `/run/${identity.product}/agent/kubeconfig`]);
    const { tokenFile } = JSON.parse(await kubeconfig).users[0].user;
    expect(await site.host.must(["cat", tokenFile])).toBe(account.token);
    await stop(agent);
  });
});

interface RecordedSpec {
  readonly bgp?: { readonly ipv4Address?: string };
  readonly ipv4VXLANTunnelAddr?: string;
  readonly podCIDRs?: readonly string[];
}

async function recordedSpec(): Promise<RecordedSpec> {
  return JSON.parse((await nodeOfCluster()).metadata.annotations?.[`${identity.labelPrefix}node-spec`] ?? "{}");
}

function run(script: string): Promise<string> {
  return site.host.must(["sh", "-ec", script]);
}

async function setMode(vxlanMode: "Always" | "Never"): Promise<void> {
  await site.server.kubectl([
    "patch",
    "ippool",
    "four",
    "--type=merge",
    `--patch={"spec":{"vxlanMode":"${vxlanMode}"}}`,
  ]);
}

/** As after a power loss: its sandbox is gone, and the host was booted after the ADD. */
async function leakedPod(name: string): Promise<KubePod> {
  const pod = await site.makePod(name);
  await site.add(pod);
  await site.host.must(["ip", "netns", "del", pod.netnsName]);
  const links = () => site.host.must(["ip", "-o", "link", "show", "type", "veth"]);
  await pollUntil(async () => (await links()) === "", "the kernel to remove the link");
  await bootNow(site.host);
  return pod;
}

/** What a kubelet does. */
async function reportMachine(machineID: string): Promise<void> {
  const rest = ["systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion", "kubeletVersion"];
  const others = [...rest, "kubeProxyVersion", "operatingSystem", "architecture"].map((field) => [field, ""]);
  const patch = JSON.stringify({ status: { nodeInfo: { machineID, ...Object.fromEntries(others) } } });
  await site.server.kubectl(["patch", "node", NODE, "--subresource=status", "--type=merge", `--patch=${patch}`]);
}

async function stop(agent: Agent): Promise<void> {
  await agent.signal("TERM");
  expect(await agent.ended).toBe(0);
}
