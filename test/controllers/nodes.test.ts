/**
 * Nodes on etcd, with a real API server, the real node agent, the real controllers and packets:
 *
 *   Node host-name of the orchestrator ── labels, addresses ──> Node node-1 ──> HostEndpoint node-1-auto-hep ──> kernel
 *                                        <── orchRefs (agent) ──
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { openAllocator } from "../../src/ipam/allocator.ts";
import { AGENT_VERSION_ANNOTATION } from "../../src/model/agent-version-annotation.ts";
import { GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NODE } from "../../src/model/kinds.ts";
import { roleName } from "../../src/release/roles/role-files.ts";
import { VERSION } from "../../src/version.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { openPolicySite, type PolicySite } from "../policy/policy-site.ts";
import { type Outcome, outcomeOf, serve } from "../policy/probes.ts";
import { type Controllers, startControllers } from "../support/controllers.ts";
import { hostProblem } from "../support/host.ts";
import { letRest, means, poolChange, request, seed, textsOf } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden, unusedPermissions } from "../support/role-use.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { openEtcdStoreAt } from "../support/test-store.ts";

const needs = [hostProblem(), apiServerProblem(), program("nft")];
const test = testNeeding(...needs);
const OWN_NAME = "node-1";
const AUTOMATIC = `${OWN_NAME}-auto-hep`;
const IN_LEAKING_POOL = { kind: "automatic", family: 4, pools: ["leaking"] } as const;
const REPORTED = ["198.51.100.1", "2001:db8:1::1"] as const;

const reported = (...addresses: readonly string[]) => addresses.map((address) => ({ type: "InternalIP", address }));

describe("nodes on etcd", () => {
  let server: ApiServer;
  let site: PolicySite;
  let controllers: Controllers;
  let audit: Audit;
  let hostName: string;
  let servers: readonly Disposable[];
  let agent: Agent;
  /** It registers its node at its start, and every few minutes. */
  const restartAgent = async () => {
    await agent.signal("KILL");
    await agent.ended;
    agent = await startAgent(site.site.host);
  };

  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    server = await startApiServer();
    for (const role of ["etcd", "controllers-etcd"] as const) {
      const file = `../../deploy/rbac/${roleName(role, identity)}.yaml`;
      await server.apply(await Bun.file(join(import.meta.dir, file)).text());
    }
    const { kubeconfig } = await server.serviceAccount({ name: identity.product });
    site = await openPolicySite({
      node: OWN_NAME,
      async openStore(host) {
        hostName = (await host.must(["cat", "/proc/sys/kernel/hostname"])).trim().toLowerCase();
        await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: hostName } }));
        const patch = JSON.stringify({ status: { addresses: reported(...REPORTED) } });
        await server.kubectl(["patch", "node", hostName, "--subresource=status", "--type=merge", `--patch=${patch}`]);
        const relay = await server.relayInto(host.netns);
        const store = await openEtcdStoreAt(server.etcdEndpoint);
        return {
          ...store,
          config: { ...store.config, kubernetes: { kubeconfig } },
          close: async () => {
            relay[Symbol.dispose]();
            await store.close();
          },
        };
      },
    });
    const end = site.ends.get("outside");
    if (end === undefined) throw new Error("nobody is outside");
    servers = (await Promise.all([serve(host(), [80, 81]), serve(end, [80])])).flat();
    agent = site.agent;
    const account = await server.serviceAccount({ name: identity.controllers });
    audit = server.startAudit();
    controllers = startControllers({
      KUBECONFIG: account.kubeconfig,
      DATASTORE_TYPE: "etcdv3",
      ETCD_ENDPOINTS: server.etcdEndpoint,
    });
  }, 120_000);
  afterAll(async () => {
    await controllers?.kill();
    for (const each of servers ?? []) each[Symbol.dispose]();
    await site?.[Symbol.asyncDispose]();
    await server?.stop();
  });

  const host = () => ({ name: "host", netns: site.site.host.netns, addresses: REPORTED });

  /** From outside to a port of the host, in both families, which must agree. */
  async function outcome(port: number, expected: Outcome): Promise<Outcome | "mixed"> {
    const outside = site.ends.get("outside") ?? host();
    const [first, second] = await Promise.all(
      ([4, 6] as const).map((family) =>
        outcomeOf({ from: outside, to: host(), protocol: "tcp", port, family }, expected, site.site.host),
      ),
    );
    return first === second ? (first ?? "mixed") : "mixed";
  }

  // biome-ignore lint/suspicious/noExplicitAny: a record has the fields that its test expects.
  async function record(key: string): Promise<any> {
    const text = (await site.store.read([{ kind: "key", key }])).answers[0]?.[0]?.value;
    return text === undefined ? undefined : JSON.parse(text);
  }
  const node = () => record(NODE.key({ name: OWN_NAME }));
  const endpoint = (name: string) => record(HOST_ENDPOINT.key({ name }));

  /** As an administrator runs it, on the host. */
  const admin = (...args: readonly string[]) =>
    site.site.host.must([builtProgram(identity.adminTool), ...args], {
      environment: { ETCD_ENDPOINTS: server.etcdEndpoint },
    });
  const apply = (
    kind: string,
    name: string,
    { spec, ...metadata }: { readonly labels?: object; readonly annotations?: object; readonly spec: object },
  ) =>
    site.site.host.must([builtProgram(identity.adminTool), "apply", "-f", "-"], {
      environment: { ETCD_ENDPOINTS: server.etcdEndpoint },
      stdin: JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...metadata }, spec }),
    });

  test("the agent records the orchestrator's name of its node, and the controllers copy its labels", async () => {
    await pollUntil(async () => (await node())?.spec.orchRefs !== undefined, "the reference of the node");
    expect((await node()).spec.orchRefs).toEqual([{ nodeName: hostName, orchestrator: "k8s" }]);

    await server.kubectl(["label", "node", hostName, "zone=a"]);
    await pollUntil(async () => (await node()).metadata.labels?.zone === "a", "the label of the node");
  });

  test("a host is migrated to its automatic host endpoint: labels, patch, deletion; its policies apply all the time", async () => {
    await apply("HostEndpoint", "everything-of-node-1", {
      labels: { role: "edge", site: "west" },
      spec: { node: OWN_NAME, interfaceName: "*" },
    });
    await apply("GlobalNetworkPolicy", "edge", {
      spec: {
        selector: "role == 'edge' && site == 'west'",
        types: ["Ingress", "Egress"],
        ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }],
        egress: [{ action: "Allow" }],
      },
    });
    const expectProtected = async () => {
      await site.untilApplied();
      expect([await outcome(80, "allow"), await outcome(81, "deny")]).toEqual(["allow", "deny"]);
    };
    await expectProtected();
    const during: string[] = [];
    let isOver = false;
    const watching = (async () => {
      while (!isOver) during.push(await outcome(81, "deny"));
    })();

    // (a)
    const labelled = `{range .items[?(@.spec.interfaceName=="*")]}{.metadata.name} {.spec.node} {.metadata.labels}{"\\n"}{end}`;
    expect(await admin("get", "hostendpoints", "-o", `jsonpath=${labelled}`)).toBe(
      'everything-of-node-1 node-1 {"role":"edge","site":"west"}\n',
    );
    await server.kubectl(["label", "node", hostName, "role=edge"]);
    await admin("label", "node", OWN_NAME, "site=west");
    await pollUntil(async () => (await node()).metadata.labels.role === "edge", "the label of the node");
    // (b)
    const patch = { spec: { controllers: { node: { hostEndpoint: { autoCreate: "Enabled" } } } } };
    await admin("patch", "kubecontrollersconfiguration", "default", "--patch", JSON.stringify(patch));
    await pollUntil(async () => (await endpoint(AUTOMATIC)) !== undefined, "the automatic host endpoint");
    const selector = `${identity.labelPrefix}created-by=${identity.controllers}`;
    expect(await admin("get", "hostendpoints", "-l", selector, "-o", "name")).toBe(`hostendpoint/${AUTOMATIC}\n`);
    expect((await endpoint(AUTOMATIC)).metadata.labels).toMatchObject({ role: "edge", site: "west", zone: "a" });
    await expectProtected();
    // (c)
    await admin("delete", "hostendpoint", "everything-of-node-1");
    await expectProtected();
    isOver = true;
    await watching;
    expect(new Set(during)).toEqual(new Set(["deny"]));

    const { status } = JSON.parse(await admin("get", "kubecontrollersconfiguration", "default", "-o", "json"));
    expect(Object.keys(status.runningConfig.controllers)).toHaveLength(5);
  }, 60_000);

  test("it expects the addresses of our Node and those that the kubelet reported", async () => {
    const { spec } = await endpoint(AUTOMATIC);
    const own = (await node()).spec.addresses.map(({ address }: { address: string }) => address.split("/")[0]);

    expect(spec).toMatchObject({ node: OWN_NAME, interfaceName: "*", profiles: [`${identity.product}-default-allow`] });
    expect([...spec.expectedIPs].toSorted()).toEqual([...new Set([...own, ...REPORTED])].toSorted());
    await server.kubectl([
      "patch",
      "node",
      hostName,
      "--subresource=status",
      "--type=merge",
      `--patch=${JSON.stringify({ status: { addresses: reported(...REPORTED, "198.51.100.77") } })}`,
    ]);
    await pollUntil(
      async () => (await endpoint(AUTOMATIC)).spec.expectedIPs.includes("198.51.100.77"),
      "the new address",
    );
  });

  test("without policies the host stays open, by the built-in profile; a policy of its labels closes it", async () => {
    await site.site.store.remove(GLOBAL_NETWORK_POLICY.key({ name: "edge" }));
    await site.untilApplied();
    expect([await outcome(80, "allow"), await outcome(81, "allow")]).toEqual(["allow", "allow"]);
    const explained = () =>
      site.site.host.run(
        [
          builtProgram(identity.adminTool),
          ...["policy", "explain", "--from", "198.51.100.2", "--to", "198.51.100.1", "--port", "81"],
        ],
        { environment: { ETCD_ENDPOINTS: server.etcdEndpoint } },
      );
    expect((await explained()).stdout).toContain(`${identity.product}-default-allow`);

    await apply("GlobalNetworkPolicy", "zone-a", { spec: { selector: "zone == 'a'", types: ["Ingress"] } });
    await site.untilApplied();
    expect([await outcome(80, "deny"), await outcome(81, "deny")]).toEqual(["deny", "deny"]);
    expect((await explained()).stdout).toContain("zone-a");
    await admin("delete", "globalnetworkpolicy", "zone-a");
  }, 60_000);

  test("a node that the orchestrator deletes is deleted here, with its host endpoint, and its release no longer counts", async () => {
    const old = "v0.0.1";
    await admin(
      "patch",
      "clusterinformation",
      "default",
      "--patch",
      `{"spec":{"${identity.product}Version":"${old}"}}`,
    );
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "n2" } }));
    const orchRefs = [{ nodeName: "n2", orchestrator: "k8s" }];
    await apply("Node", "n2", { annotations: { [AGENT_VERSION_ANNOTATION]: old }, spec: { orchRefs } });
    expect(await admin("version")).toContain('Held Back By:       node "n2"');
    await seed(site.store, poolChange("leaking", "10.61.0.0/24"));
    const attributes = { pod: "lost", namespace: "default" };
    const [leaked = ""] = textsOf(
      await openAllocator(site.store, means()).assign(
        request("net.lost", {
          network: "net",
          interface: "eth0",
          node: "n2",
          attributes,
          addressRequests: [IN_LEAKING_POOL],
        }),
      ),
    );

    await server.kubectl(["delete", "node", "n2"]);
    await pollUntil(async () => (await record(NODE.key({ name: "n2" }))) === undefined, "the deletion of n2");
    await pollUntil(async () => (await endpoint("n2-auto-hep")) === undefined, "the deletion of its host endpoint");
    await controllers.untilLogged(`released ${leaked.split("/")[0]}`);
    await letRest(site.store);
    await controllers.untilLogged("released the claim of node n2");
    await restartAgent();
    const raised = new RegExp(`Cluster Version:    ${VERSION}$`, "m");
    await pollUntil(async () => raised.test(await admin("version")), "the agent to raise the version");
    // An administrator and the controller may delete the same node.
    expect(await admin("delete", "node", "n2", "--ignore-not-found")).toContain("not found");
  });

  test("a deleted node whose agent runs on is registered again only after it has joined again", async () => {
    await server.kubectl(["delete", "node", hostName]);
    await pollUntil(async () => (await node()) === undefined, "the deletion of the node");
    await restartAgent();
    await pollUntil(() => agent.log().includes("the orchestrator has no Node"), "the agent to refuse");
    expect(await node()).toBeUndefined();

    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: hostName } }));
    await restartAgent();
    await pollUntil(async () => (await node()) !== undefined, "the agent to register the node");
    expect((await node()).spec.orchRefs).toEqual([{ nodeName: hostName, orchestrator: "k8s" }]);
  });

  test("the controllers have exactly the permissions that they need", () => {
    const asked = audit.requests(`system:serviceaccount:kube-system:${identity.controllers}`);

    expect(asked.filter(isForbidden)).toEqual([]);
    // What they ask before they delete a copy: copies.test.ts has such deletions, with the same role.
    const beforeDeletions = ["networkpolicies", "serviceaccounts"];
    const unused = unusedPermissions("controllers-etcd", asked).map(({ verb, resource }) => `${verb} ${resource}`);
    // The API has no definition of this kind: cluster-network-policy.test.ts.
    const ofClusterPolicies = ["get clusternetworkpolicies", "patch clusternetworkpolicies/status"];
    // Only while an address waits for a pod: orchestrator.test.ts.
    const owners = ["statefulsets", "virtualmachines", "virtualmachineinstances"];
    const ofOwners = owners.flatMap((kind) => [`get ${kind}`, `list ${kind}`]);
    const expected = [...ofClusterPolicies, ...ofOwners, ...beforeDeletions.map((resource) => `get ${resource}`)];
    expect(unused.toSorted()).toEqual(expected.toSorted());
  });
});
