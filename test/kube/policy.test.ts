/** Policy with the orchestrator's API as the datastore: kubectl changes it, the node agent under its role enforces it. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import type { Permission } from "../../src/release/roles/role-files.ts";
import { expectLives, policyResources, type RunAdmin } from "../admin/policy-kind-commands.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { hostProblem } from "../support/host.ts";
import { apiServerProblem } from "../support/kube-apiserver.ts";
import type { Audit } from "../support/kube-audit.ts";
import { type KubePod, type KubeSite, openKubeSite } from "../support/kube-store-site.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { isForbidden, isStreamedList, unusedPermissions } from "../support/role-use.ts";
import { builtProgram } from "../support/run-plugin.ts";

const needs = [hostProblem() ?? apiServerProblem(), program("nft")];
const isPossible = needs.every((need) => need === undefined);
const testSite = testNeeding(...needs);
const ROLE = readFileSync(join(import.meta.dir, `../../deploy/rbac/${identity.product}-node-kubernetes.yaml`), "utf8");
const POLICY = { policy: { type: "k8s" } };
const [PORT, OTHER_PORT] = [8080, 8081];
const WITHIN_MILLISECONDS = 1_000;
const PATIENCE_MILLISECONDS = 100;
/** All nodes wait for a random time before they write an event. */
const EVENT_MILLISECONDS = 30_000;

interface AttachedPod extends KubePod {
  readonly addresses: readonly string[];
}

let site: KubeSite;
let agent: Agent;
let audit: Audit;
let auditWithRole: Audit;
let [web, client, other]: AttachedPod[] = [];
let listeners: readonly Disposable[] = [];

beforeAll(async () => {
  if (!isPossible) return;
  site = await openKubeSite();
  audit = site.server.startAudit();
  const { name, cniVersion, ...plugin } = site.config(POLICY);
  site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
  await site.server.createNamespace("blue");
}, 120_000);
afterAll(async () => {
  for (const listener of listeners) listener[Symbol.dispose]();
  await site?.[Symbol.asyncDispose]();
});

async function attach(name: string, more: Parameters<KubeSite["makePod"]>[1]): Promise<AttachedPod> {
  const pod = await site.makePod(name, more);
  const addresses = await site.add(pod, site.config(POLICY));
  return { ...pod, addresses: addresses.map((each) => each.split("/")[0] ?? "") };
}

/** Whether each address of the pod can be reached. */
async function reaches(from: AttachedPod | undefined, to: AttachedPod | undefined, port = PORT): Promise<string> {
  const netns = site.host.view(from?.netns ?? "");
  const ask = async (address: string) => {
    const reply = await askTcpWithin(PATIENCE_MILLISECONDS, netns, address, port);
    return reply.startsWith("web ") ? "open" : "closed";
  };
  return [...new Set(await Promise.all((to?.addresses ?? []).map(ask)))].join();
}

type Expected = readonly [from: AttachedPod | undefined, port: number, outcome: "open" | "closed"];

/** Within a second after the change, on both families. */
async function soon(...expected: readonly Expected[]): Promise<void> {
  const wanted = expected.map(([, , outcome]) => outcome).join(" ");
  const found = async () => (await Promise.all(expected.map(([from, port]) => reaches(from, web, port)))).join(" ");
  let last = "";
  await pollUntil(
    async () => {
      last = await found();
      return last === wanted;
    },
    `${wanted}, not ${last}`,
    WITHIN_MILLISECONDS,
  );
}

/** As the administrator of the cluster. */
function adminOf({ host, server }: KubeSite): RunAdmin {
  const environment = { DATASTORE_TYPE: "kubernetes", KUBECONFIG: server.adminKubeconfig };
  return async (args, stdin = "") => {
    const run = await host.run([builtProgram(identity.adminTool), ...args], { environment, stdin });
    return run.code === 0 ? run.stdout : `failed: ${run.stderr}`;
  };
}

const apply = (apiVersion: string, kind: string, name: string, more: object) =>
  site.server.apply(JSON.stringify({ apiVersion, kind, metadata: { name, namespace: "red" }, ...more }));
const networkPolicy = (name: string, spec: object) =>
  apply("networking.k8s.io/v1", "NetworkPolicy", name, {
    spec: { podSelector: { matchLabels: { app: "web" } }, ...spec },
  });
const remove = (kind: string, name: string) => site.server.kubectl(["delete", kind, name, "--namespace=red"]);
const label = (kind: string, name: string, ...labels: readonly string[]) =>
  site.server.kubectl(["label", kind, name, "--namespace=red", "--overwrite", ...labels]);

describe("policy with the orchestrator's API as the datastore", () => {
  testSite(
    "without its role the agent names the missing permission and ADD is refused; with it, it enforces",
    async () => {
      agent = await startAgent(site.host);
      const words = "the role lacks the permission to list networkpolicies";
      await pollUntil(() => agent.log().includes(words), `the agent to say "${words}"`);
      const pod = await site.makePod("web", {
        metadata: { labels: { app: "web" } },
        spec: { containers: [{ name: "main", image: "none", ports: [{ name: "http", containerPort: PORT }] }] },
      });
      const refused = await site.call("ADD", pod, site.config(POLICY));
      expect(JSON.parse(refused.stdout)).toMatchObject({ code: 11 });

      await site.server.apply(ROLE);
      const table = () => site.host.run(["nft", `list table inet ${identity.policyTable}`]);
      await pollUntil(async () => (await table()).code === 0, "the agent to write its table");
      const addresses = await site.add(pod, site.config(POLICY));
      web = { ...pod, addresses: addresses.map((each) => each.split("/")[0] ?? "") };
      client = await attach("client", { metadata: { labels: { app: "client" } } });
      other = await attach("other", { namespace: "blue" });
      const netns = site.host.view(web.netns);
      listeners = [PORT, OTHER_PORT].map((port) => serveTcp(netns, "web", port));
      await soon([client, PORT, "open"], [other, PORT, "open"]);
      auditWithRole = site.server.startAudit();
    },
  );

  testSite("a NetworkPolicy closes and opens pods by labels of pods and namespaces, and by named ports", async () => {
    await networkPolicy("web", { policyTypes: ["Ingress"] });
    await soon([client, PORT, "closed"], [other, PORT, "closed"]);
    const from = [
      { podSelector: { matchLabels: { app: "client" } } },
      { namespaceSelector: { matchLabels: { team: "b" } } },
    ];
    await networkPolicy("web", { ingress: [{ from }] });
    await soon([client, PORT, "open"], [other, PORT, "closed"]);
    await site.server.kubectl(["label", "namespace", "blue", "team=b"]);
    await soon([client, PORT, "open"], [other, PORT, "open"]);
    await site.server.kubectl(["label", "namespace", "blue", "team-"]);
    await label("pod", "client", "app=former");
    await soon([client, PORT, "closed"], [other, PORT, "closed"]);
    await label("pod", "client", "app=client");
    await soon([client, PORT, "open"]);
    await networkPolicy("web", { ingress: [{ from, ports: [{ port: "http" }] }] });
    await soon([client, PORT, "open"], [client, OTHER_PORT, "closed"]);
    await remove("networkpolicy.networking.k8s.io", "web");
    await soon([other, PORT, "open"], [client, OTHER_PORT, "open"]);
  });

  testSite(
    "policies of this product match services by their EndpointSlices, and go before the others by order",
    async () => {
      const slice = (name: string, addresses: readonly string[], port: number) =>
        apply("discovery.k8s.io/v1", "EndpointSlice", name, {
          metadata: { name, namespace: "red", labels: { "kubernetes.io/service-name": "web" } },
          addressType: addresses[0]?.includes(":") ? "IPv6" : "IPv4",
          endpoints: [{ addresses, conditions: { ready: true } }],
          ports: [{ port, protocol: "TCP" }],
        });
      const slices = (port: number) =>
        Promise.all((web?.addresses ?? []).map((address, index) => slice(`web-${index}`, [address], port)));
      await slices(PORT);
      await apply(API_VERSION, "NetworkPolicy", "to-web", {
        spec: {
          ...{ tier: "default", order: 10, selector: "app == 'client'", types: ["Egress"] },
          egress: [{ action: "Allow", protocol: "TCP", destination: { services: { name: "web", namespace: "red" } } }],
        },
      });
      await soon([client, PORT, "open"], [client, OTHER_PORT, "closed"]);
      await slices(OTHER_PORT);
      await soon([client, PORT, "closed"], [client, OTHER_PORT, "open"]);
      await remove(`networkpolicy.${identity.apiGroup}`, "to-web");
      await soon([client, PORT, "open"], [client, OTHER_PORT, "open"]);
    },
  );

  testSite("a policy beyond the limits closes its pods, and an event in its namespace says so", async () => {
    const labels = ["client", ...Array.from({ length: 1_000 }, (_, index) => `other-${index}`)];
    const from = labels.map((app) => ({ podSelector: { matchLabels: { app } } }));
    await networkPolicy("large", { ingress: [{ from }] });
    await soon([client, PORT, "closed"]);
    const events = () =>
      site.server.kubectl([
        "get",
        "events",
        "--namespace=red",
        "--output=jsonpath={range .items[*]}{.involvedObject}{.message}{end}",
      ]);
    await pollUntil(async () => (await events()) !== "", "an event", EVENT_MILLISECONDS);
    expect(await events()).toContain('"kind":"NetworkPolicy","name":"large","namespace":"red"}');
    expect(await events()).toContain("It denies more than it says: it has more than 1000 different selectors");
    await networkPolicy("large", { ingress: [{ from: from.slice(0, 1_000) }] });
    await soon([client, PORT, "open"]);
    await remove("networkpolicy.networking.k8s.io", "large");
  });

  testSite("a changed CRD ends its watches: the agent lists again", async () => {
    const crd = `networkpolicies.${identity.apiGroup}`;
    const lists = () =>
      audit
        .requests(site.user)
        .filter((request) => isStreamedList(request) && request.uri.includes(`/${API_VERSION}/networkpolicies?`))
        .length;
    const listed = lists();
    const patch = JSON.stringify({ spec: { names: { shortNames: ["np", "vnp"] } } });
    await site.server.kubectl(["patch", "crd", crd, "--type=merge", `--patch=${patch}`]);
    await pollUntil(() => lists() > listed, "the agent to list again");

    await apply(API_VERSION, "NetworkPolicy", "closed", {
      spec: { tier: "default", selector: "app == 'web'", types: ["Ingress"] },
    });
    await soon([client, PORT, "closed"]);
    await remove(crd, "closed");
    await soon([client, PORT, "open"]);
  });

  /** What the upkeep needs is shown by agent-upkeep.test.ts. */
  const isOfUpkeep = ({ verb, resource }: Permission) =>
    ["list nodes", "patch nodes/status", "update clusterinformations"].includes(`${verb} ${resource}`);
  /** Services are followed only if BGP announces networks of theirs: test/routing/single-addresses.test.ts. */
  const isOfServices = ({ resource }: Permission) => resource === "services";

  /** The API has no definition of this kind: cluster-network-policy.test.ts. */
  const isUndefined = ({ resource }: Permission) => resource === "clusternetworkpolicies";

  /** Staged policies are followed only while flows are recorded: test/install/installed-flows.ts. */
  const isOfFlows = ({ resource }: Permission) => resource.startsWith("staged");

  testSite("its role has exactly the permissions that it needs", () => {
    const served = audit
      .requests(site.user)
      .filter(({ status, name, verb }) => (status === 200 && name === "") || (status === 201 && verb === "create"));
    const unused = unusedPermissions("node-kubernetes", served);
    const isElsewhere = [isOfUpkeep, isOfServices, isUndefined, isOfFlows];
    expect(unused.filter((permission) => !isElsewhere.some((is) => is(permission)))).toEqual([]);
    expect(auditWithRole.requests(site.user).filter(isForbidden)).toEqual([]);
  });

  testSite("the admin tool creates, shows, changes, labels and deletes each kind of policy and BGP", async () => {
    await expectLives(adminOf(site), policyResources({ hasServices: true }));
  });

  testSite("the admin tool shows the policies of Kubernetes, and says where they can be changed", async () => {
    await networkPolicy("shown", { policyTypes: ["Ingress"] });
    const admin = adminOf(site);

    expect(await admin(["get", "np", "knp.default.shown", "-n", "red"])).toContain("app == 'web'");
    const refused = await admin(["delete", "np", "knp.default.shown", "-n", "red"]);
    expect(refused).toContain("derived from its own NetworkPolicies");
    await remove("networkpolicy.networking.k8s.io", "shown");
  });

  testSite(
    "an agent that starts while the datastore is locked enforces by what is there; ADD and DEL are tried again",
    async () => {
      const lock = (isLocked: boolean) =>
        site.server.kubectl([
          ...["patch", "clusterinformation", "default", "--type=merge"],
          `--patch=${JSON.stringify({ spec: { datastoreReady: !isLocked } })}`,
        ]);
      const ipam = () => site.server.kubectl(["get", "ipamblocks,ipamhandles,blockaffinities", "--output=yaml"]);
      await networkPolicy("web", { policyTypes: ["Ingress"], ingress: [{ from: [{ podSelector: {} }] }] });
      await soon([client, PORT, "open"], [other, PORT, "closed"]);
      await lock(true);
      await agent.signal("KILL");
      await agent.ended;
      await site.host.must(["nft", `delete table inet ${identity.policyTable}`]);
      await pollUntil(async () => (await reaches(other, web)) === "open", "no rules");
      const before = await ipam();
      agent = await startAgent(site.host);
      await pollUntil(async () => (await reaches(other, web)) === "closed", "the rules of the new agent");

      await soon([client, PORT, "open"], [other, PORT, "closed"]);
      const config = site.config(POLICY);
      const locked = { code: 11, msg: expect.stringContaining("locked") };
      const late = await site.makePod("late");
      expect(JSON.parse((await site.call("ADD", late, config)).stdout)).toMatchObject(locked);
      expect((await site.call("STATUS", late, config)).code).toBe(0);
      expect(await ipam()).toBe(before);
      await lock(false);
      expect(await site.add(late, config)).not.toEqual([]);
      await lock(true);
      expect(JSON.parse((await site.call("DEL", late, config)).stdout)).toMatchObject(locked);
      await lock(false);
      await site.del(late, config);
      expect(await ipam()).not.toContain(late.containerId);
      await remove("networkpolicy.networking.k8s.io", "web");
      await soon([other, PORT, "open"]);
    },
  );

  testSite("the rules stay while the API server is away, and follow it when it is back", async () => {
    await networkPolicy("web", { policyTypes: ["Ingress"] });
    await soon([client, PORT, "closed"]);
    await site.server.apiServer.kill();
    await pollUntil(() => /\[WARNING\].*API server|\[WARNING\].*Cannot/.test(agent.log()), "the agent to notice");
    expect(await reaches(client, web)).toBe("closed");
    // A new agent without a datastore leaves the rules as well.
    await agent.signal("KILL");
    await agent.ended;
    agent = await startAgent(site.host);
    expect(await reaches(client, web)).toBe("closed");

    await site.server.apiServer.restart();
    await remove("networkpolicy.networking.k8s.io", "web");
    await pollUntil(async () => (await reaches(client, web)) === "open", "the agent to catch up");
    await networkPolicy("web", { policyTypes: ["Ingress"] });
    await soon([client, PORT, "closed"]);
  });
});
