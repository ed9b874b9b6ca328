/**
 * The policies for the accounts of plugin and node agent on a real API server, with real tokens that are bound to nodes:
 * what a stolen token could do without them, that it cannot with them, and that everything that IPAM does still works.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { nodeUid, requestAccountToken } from "../../src/agent/node-setup/account-token.ts";
import { boundNodeUid } from "../../src/agent/node-setup/kubeconfig.ts";
import { nodeEvents } from "../../src/agent/warning-events.ts";
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { sourceOf } from "../../src/datastore/replica/kinds.ts";
import { startReplica } from "../../src/datastore/replica.ts";
import { identity } from "../../src/identity.ts";
import { type Address, formatAddress } from "../../src/ip/address.ts";
import { nthAddress } from "../../src/ip/block.ts";
import { prefixAround } from "../../src/ip/prefix.ts";
import { readAllRecords } from "../../src/ipam/all-records.ts";
import { type Allocator, openAllocator } from "../../src/ipam/allocator.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import { forgetBorrowings } from "../../src/ipam/leaks/borrowings.ts";
import type { KubeRequest } from "../../src/kube/api.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { keepHandle, keptOf } from "../../src/model/kept-address.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import { PLUGIN_ACCOUNT } from "../../src/release/roles/rules.ts";
import { BINDS_TOKENS } from "../../src/release/workloads/names.ts";
import { blockFacts, ROUTED_BLOCK_KINDS, ROUTING_KINDS, resourceFacts } from "../../src/routing/inputs.ts";
import { RoutePlanner } from "../../src/routing/planner.ts";
import { vxlanMac } from "../../src/routing/vxlan-mac.ts";
import { means, poolChange, prefix, request, seed, textsOf } from "../support/ipam.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { manifestText } from "../support/manifest-text.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { planLines } from "../support/routing-facts.ts";

const problem = apiServerProblem();
const testServer = testNeeding(problem);
setDefaultTimeout(120_000);

const { product, nodeAgent, annotationPrefix, labelPrefix, apiGroup } = identity;
const GROUP = "app.kubernetes.io/component";
const MANIFEST = manifestText(`${product}.yaml`);
const RESOURCES = `/apis/${apiGroup}/v3`;
const NODES = ["node-1", "node-2"] as const;
type Node = (typeof NODES)[number];
type Account = "plugin" | "agent";

interface Tokens {
  readonly plugin: string;
  readonly agent: string;
}

let server: ApiServer;
let admin: Datastore;
const tokens = {} as Record<Node, Tokens>;
const open: Datastore[] = [];

beforeAll(async () => {
  if (problem !== undefined) return;
  server = await startApiServer({ with: ["controller-manager"] });
  await server.kubectl(
    ["apply", "--server-side", `--selector=${GROUP}!=admission-node-accounts`, "--filename=-"],
    MANIFEST,
  );
  await server.kubectl(["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
  await server.createNamespace("pods");
  for (const node of NODES) {
    const spec = { podCIDRs: node === "node-1" ? ["10.244.1.0/24", "fd00:0:0::/80"] : ["10.244.2.0/24"] };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: node }, spec }));
    await createPod(node, "pods", "default");
    await createPod(node, "kube-system", nodeAgent);
    const ofNode = { kind: "Node", name: node } as const;
    const ofPod = { kind: "Pod", name: `pod-of-${node}` } as const;
    const plugin = await server.serviceAccount({ name: PLUGIN_ACCOUNT, boundTo: ofNode });
    const agent = await server.serviceAccount({ name: nodeAgent, boundTo: ofPod });
    tokens[node] = { plugin: plugin.kubeconfig, agent: agent.kubeconfig };
  }
  admin = await storeOf(server.adminKubeconfig);
  await seed(admin, poolChange("small", "10.0.0.0/26", { blockSize: 26 }));
  await server.apply(
    JSON.stringify({
      apiVersion: `${apiGroup}/v3`,
      kind: "ClusterInformation",
      metadata: { name: "default" },
      spec: { clusterGUID: "one", datastoreReady: true },
    }),
  );
});

afterAll(async () => {
  for (const store of open) await store.close();
  await server?.stop();
});

async function createPod(node: Node, namespace: string, serviceAccountName: string): Promise<void> {
  const metadata = { name: `pod-of-${node}`, namespace };
  const spec = { nodeName: node, serviceAccountName, containers: [{ name: "main", image: "none" }] };
  await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
}

async function storeOf(kubeconfig: string): Promise<Datastore> {
  const store = await openDatastore({ kind: "orchestrator", access: { kubeconfigs: [kubeconfig] } });
  open.push(store);
  return store;
}

async function allocatorOf(node: Node): Promise<Allocator> {
  return openAllocator(await storeOf(tokens[node].plugin), means({ now: () => new Date() }));
}

/** The complaint of the server; empty if it accepts the request, which changes nothing. */
async function refusalOf(account: Account, wanted: KubeRequest): Promise<string> {
  const client = await clientOf(tokens["node-1"][account]);
  try {
    const { status, text } = await client.request({ ...wanted, query: { dryRun: "All" } });
    return status < 300 ? "" : `${status} ${text}`;
  } finally {
    await client.close();
  }
}

function clientOf(kubeconfig: string) {
  return openKubeClient(
    { kubeconfigs: [kubeconfig] },
    { environment: {}, warn: () => {}, now: () => new Date(), elapsed: () => performance.now() },
  );
}

function merge(path: string, change: object): KubeRequest {
  return { method: "PATCH", path, contentType: "application/merge-patch+json", body: JSON.stringify(change) };
}

// biome-ignore lint/suspicious/noExplicitAny: objects of the API, as they are
type Json = any;

/** The object as it is, changed. */
async function replaced(kind: string, name: string, change: (object: Json) => void): Promise<KubeRequest> {
  const object = await server.get<Json>(kind, name);
  change(object);
  return { method: "PUT", path: `${RESOURCES}/${kind}/${name}`, body: JSON.stringify(object) };
}

/** A block of node-1. */
function creation(name: string, cidr: string, allocations: readonly null[] = []): KubeRequest {
  const spec = { cidr, affinity: "host:node-1", allocations, unallocated: [], attributes: [] };
  const body = { apiVersion: `${apiGroup}/v3`, kind: "IPAMBlock", metadata: { name }, spec };
  return { method: "POST", path: `${RESOURCES}/ipamblocks`, body: JSON.stringify(body) };
}

function deletion(kind: string, name: string): KubeRequest {
  // Options in the query do not count here.
  return { method: "DELETE", path: `${RESOURCES}/${kind}/${name}`, body: JSON.stringify({ dryRun: ["All"] }) };
}

function tokenRequest(boundObjectRef?: object, more: object = {}): KubeRequest {
  const path = `/api/v1/namespaces/kube-system/serviceaccounts/${PLUGIN_ACCOUNT}/token`;
  const body = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { boundObjectRef, ...more } };
  return { method: "POST", path, body: JSON.stringify(body) };
}

const pod = (node: Node) => `/api/v1/namespaces/pods/pods/pod-of-${node}/status`;
const nodeStatus = (node: Node) => `/api/v1/nodes/${node}/status`;
const nodeSpec = { metadata: { annotations: { [`${labelPrefix}node-spec`]: "{}" } } };
/** A record as an agent writes it, or as somebody else would. */
const record = (spec: object | string): KubeRequest => {
  const text = typeof spec === "string" ? spec : JSON.stringify(spec);
  return merge(nodeStatus("node-1"), { metadata: { annotations: { [`${labelPrefix}node-spec`]: text } } });
};
const podIp = { metadata: { annotations: { [`${annotationPrefix}podIP`]: "10.0.0.9/32" } } };
const BLOCK = "10-0-0-0-26";

/** Of a thief with a token of node-1. The block of the only pool is that of node-2. */
const ATTACKS: readonly (readonly [title: string, Account, () => Promise<KubeRequest> | KubeRequest])[] = [
  [
    "the labels of a pod of another node",
    "plugin",
    () => merge(pod("node-2"), { metadata: { labels: { app: "web" } } }),
  ],
  [
    "the labels of a pod of its own node",
    "plugin",
    () => merge(pod("node-1"), { metadata: { labels: { app: "web" } } }),
  ],
  ["the addresses of a pod of another node", "agent", () => merge(pod("node-2"), podIp)],
  ["what a kubelet reported", "agent", () => merge(pod("node-1"), { status: { podIP: "10.0.0.9" } })],
  ["another node's record", "agent", () => merge(nodeStatus("node-2"), nodeSpec)],
  ["a label of another Node", "agent", () => merge(nodeStatus("node-2"), { metadata: { labels: { rack: "1" } } })],
  ["a label of its own Node", "agent", () => merge(nodeStatus("node-1"), { metadata: { labels: { rack: "1" } } })],
  [
    "an annotation of others",
    "agent",
    () => merge(nodeStatus("node-1"), { metadata: { annotations: { other: "1" } } }),
  ],
  [
    "the addresses of its own Node",
    "agent",
    () => merge(nodeStatus("node-1"), { status: { addresses: [{ type: "InternalIP", address: "192.0.2.1" }] } }),
  ],
  [
    "another condition of its own Node",
    "agent",
    () => merge(nodeStatus("node-1"), { status: { conditions: [{ type: "Ready", status: "True" }] } }),
  ],
  ["pod CIDRs of another node", "agent", () => record({ podCIDRs: ["10.244.1.0/24", "10.244.2.0/24"] })],
  ["pod CIDRs of another node, behind others", "agent", () => record('{"podCIDRs":["]",1,"10.244.2.0/24"]}')],
  ["pod CIDRs of another node, a second time", "agent", () => record('{"podCIDRs":[],"podCIDRs": ["0.0.0.0/1"]}')],
  ["pod CIDRs of another node, escaped", "agent", () => record(String.raw`{"podCIDR\u0073":["10.244.2.0/24"]}`)],
  ["a block larger than those of pools", "plugin", () => creation("10-0-0-0-19", "10.0.0.0/19")],
  ["a pool", "plugin", () => merge(`${RESOURCES}/ippools/small`, { spec: { natOutgoing: true } })],
  ["the finalizer of a pool", "plugin", () => merge(`${RESOURCES}/ippools/small`, { metadata: { finalizers: [] } })],
  [
    "the lock of the datastore",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ spec }) => {
        spec.datastoreReady = false;
      }),
  ],
  [
    "the identity of the cluster",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ spec }) => {
        spec.clusterGUID = "two";
      }),
  ],
  [
    "the cluster that the datastore belongs to",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ spec }) => {
        spec.kubeSystemUID = "another";
      }),
  ],
  [
    "the type of the cluster",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ spec }) => {
        spec.clusterType = "other";
      }),
  ],
  [
    "an annotation of others at the cluster",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, other: "1" };
      }),
  ],
  [
    "the features of its own Node",
    "agent",
    () => merge(nodeStatus("node-1"), { status: { features: { supplementalGroupsPolicy: true } } }),
  ],
  ["another node's block, a second time with another name", "plugin", () => creation("second", "10.0.0.0/26")],
  ["a block with the name of another", "plugin", () => creation("10-0-0-64-26", "10.0.0.128/26")],
  [
    "an address of another node, released",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.unallocated.push(0);
        spec.allocations[0] = null;
      }),
  ],
  [
    "an address of another node, taken over",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.attributes[spec.allocations[0]].secondary.node = "node-1";
      }),
  ],
  [
    "two addresses of other nodes, exchanged",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec: { allocations } }) => {
        [allocations[0], allocations[1]] = [allocations[1], allocations[0]];
      }),
  ],
  [
    "a free address, assigned in the name of another node",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.allocations[spec.unallocated.shift()] = 0;
      }),
  ],
  [
    "the sequence number of an address of another node",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.sequenceNumberForAllocation["0"] = 9;
      }),
  ],
  [
    "free addresses of another node's block, hidden",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.unallocated = [];
      }),
  ],
  [
    "another node's block, claimed",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.affinity = "host:node-1";
      }),
  ],
  [
    "another node's block, without a node",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ spec }) => {
        spec.affinity = null;
      }),
  ],
  ["another node's block, deleted", "plugin", () => deletion("ipamblocks", BLOCK)],
  [
    "another node's block, handed to the garbage collector",
    "plugin",
    () =>
      replaced("ipamblocks", BLOCK, ({ metadata }) => {
        metadata.ownerReferences = [{ apiVersion: "v1", kind: "Node", name: "gone", uid: "gone" }];
      }),
  ],
  ["another node's claim", "plugin", () => deletion("blockaffinities", `node-2-${BLOCK}`)],
  ["another node's handle", "plugin", () => deletion("ipamhandles", "of-node-2")],
  ["a token that is not bound", "agent", () => tokenRequest()],
  ["a token of another node", "agent", () => tokenRequest({ apiVersion: "v1", kind: "Node", name: "node-2" })],
];

const ALLOWED: readonly (readonly [title: string, Account, () => Promise<KubeRequest> | KubeRequest])[] = [
  ["addresses of its own pods", "plugin", () => merge(pod("node-1"), podIp)],
  ["its own record", "agent", () => merge(nodeStatus("node-1"), nodeSpec)],
  [
    "its own record with its pod CIDRs",
    "agent",
    () =>
      record({
        bgp: { ipv4Address: "192.0.2.1/24" },
        podCIDRs: ["10.244.1.0/24", "fd00:0:0::/80"],
        addresses: [{ address: "192.0.2.1/24", type: "InternalIP" }],
      }),
  ],
  [
    "the condition NetworkUnavailable of its Node",
    "agent",
    () => merge(nodeStatus("node-1"), { status: { conditions: [{ type: "NetworkUnavailable", status: "False" }] } }),
  ],
  ["a token of its own Node", "agent", () => tokenRequest({ apiVersion: "v1", kind: "Node", name: "node-1" })],
  ["a block of its own", "plugin", () => creation("10-0-0-64-26", "10.0.0.64/26")],
  ["a block of its own, of IPv6", "plugin", () => creation("fd80---122", "fd80::/122")],
  ["a block of its own whose name is a digest", "plugin", () => creation("40-122-0123456789abcdef", "::40/122")],
  [
    "the release of the cluster",
    "agent",
    () =>
      replaced("clusterinformations", "default", ({ spec }) => {
        spec[`${product}Version`] = "v3.99.0";
      }),
  ],
];

describe("a token of one node", () => {
  testServer("could change all of this if there were no policies", async () => {
    const two = await allocatorOf("node-2");
    await two.assign(request("of-node-2", { node: "node-2" }));
    await two.assign(request("also-of-node-2", { node: "node-2" }));
    // Exact as numbers of JavaScript.
    const sequences = { spec: { sequenceNumber: 3, sequenceNumberForAllocation: { 0: 1, 1: 2 } } };
    await server.kubectl(["patch", "ipamblock", BLOCK, "--type=merge", `--patch=${JSON.stringify(sequences)}`]);
    const refused: string[] = [];
    for (const [title, account, wanted] of [...ATTACKS, ...ALLOWED]) {
      const refusal = await refusalOf(account, await wanted());
      if (refusal !== "") refused.push(`${title}: ${refusal}`);
    }
    expect(refused).toEqual([]);
  });

  testServer("changes none of it with the policies of the manifest", async () => {
    await server.kubectl(["apply", "--server-side", "--filename=-"], MANIFEST);
    for (const [title, account, wanted] of ATTACKS) {
      const isRefused = async () => (await refusalOf(account, await wanted())).includes("with a token of node");
      await pollUntil(isRefused, `the refusal of ${title}`);
    }
  });

  for (const [title, account, wanted] of ALLOWED) {
    testServer(`still writes ${title}`, async () => {
      expect(await refusalOf(account, await wanted())).toBe("");
    });
  }
});

describe("the policies of node accounts", () => {
  testServer("let the agent request the plugin's token, which says its node", async () => {
    const client = await clientOf(tokens["node-1"].agent);
    const account = { namespace: "kube-system", name: PLUGIN_ACCOUNT };
    const { token } = await requestAccountToken(client, { ...account, node: "node-1" });
    expect(boundNodeUid(token)).toBe(await nodeUid(client, "node-1", new AbortController().signal));
    await expect(requestAccountToken(client, { ...account, node: "node-2" })).rejects.toThrow("its own Node only");
    await client.close();
  });

  testServer("let the agent say on its Node what it found out about tunnels", async () => {
    const logged: string[] = [];
    const followed = {
      means: { clock: { now: () => new Date() }, openKubeClient: () => clientOf(tokens["node-1"].agent) },
      network: { node: "node-1", orchestrator: { agentAccess: {} } },
      store: { isOrchestratorApi: true },
      log: (message: string) => void logged.push(message),
    } as unknown as Parameters<typeof nodeEvents>[0];
    const tell = nodeEvents(followed, new AbortController().signal);
    await tell("Checksum offload is off");
    await tell("Checksum offload is off");
    expect(logged).toEqual([]);
    const described = await server.kubectl(["describe", "node", "node-1"]);
    expect(described).toMatch(/Warning +TunnelPath .*Checksum offload is off/);
  });

  testServer("let agents of a former release request unbound tokens for a day, as long as there are any", async () => {
    const patchAgents = (spec: object) => {
      const target = ["--namespace=kube-system", "daemonset", nodeAgent, "--type=merge"];
      return server.kubectl(["patch", ...target, `--patch=${JSON.stringify({ spec })}`]);
    };
    const setTemplate = (mark: "true" | null) =>
      patchAgents({ template: { metadata: { annotations: { [BINDS_TOKENS]: mark } } } });
    const deletePods = () =>
      server.kubectl([
        "delete",
        "--namespace=kube-system",
        "pod",
        `--selector=app.kubernetes.io/name=${nodeAgent}`,
        "--wait=true",
      ]);
    const pollPods = (current: number, updated: number) =>
      pollUntil(async () => {
        const { metadata, status } = await server.get<Json>("daemonset", nodeAgent, "--namespace=kube-system");
        const { observedGeneration, currentNumberScheduled, updatedNumberScheduled = 0 } = status;
        const isObserved = observedGeneration === metadata.generation;
        return isObserved && currentNumberScheduled === current && updatedNumberScheduled === updated;
      }, `${updated} of ${current} agents with the template`);
    const pollRefusal = (isRefused: boolean, title: string) =>
      pollUntil(
        async () => (await refusalOf("agent", tokenRequest())).includes("its own Node only") === isRefused,
        title,
      );

    await patchAgents({ updateStrategy: { type: "OnDelete", rollingUpdate: null } });
    await server.kubectl(["label", "node", ...NODES, "kubernetes.io/os=linux", "--overwrite"]);
    await pollPods(2, 2);
    await pollRefusal(true, "the refusal once all agents bind tokens");
    await setTemplate(null);
    await pollRefusal(false, "an unbound token while the former release is rolled out");
    await deletePods();
    await pollPods(2, 2);
    await pollRefusal(false, "an unbound token under the former release");
    const long = await refusalOf("agent", tokenRequest(undefined, { expirationSeconds: 86_401 }));
    expect(long).toContain("valid for a day at most");
    await setTemplate("true");
    await pollPods(2, 0);
    await pollRefusal(false, "an unbound token while this release is rolled out");
    await deletePods();
    await pollPods(2, 2);
    await pollRefusal(true, "the refusal once it is rolled out");
  });

  testServer("do not apply to a token that says no node", async () => {
    const { kubeconfig } = await server.serviceAccount({ name: PLUGIN_ACCOUNT });
    const client = await clientOf(kubeconfig);
    const { status } = await client.request({ ...merge(pod("node-2"), podIp), query: { dryRun: "All" } });
    expect(status).toBe(200);
    await client.close();
  });

  testServer("have no expression that the API server's own type check warns about", async () => {
    await pollUntil(
      async () =>
        (await policies()).every(({ metadata, status }) => status?.observedGeneration === metadata.generation),
      "the type check",
    );
    const warned = (await policies()).filter(({ status }) => status.typeChecking?.expressionWarnings !== undefined);
    expect(warned.map(({ metadata, status }) => [metadata.name, status.typeChecking])).toEqual([]);
  });

  async function policies(): Promise<readonly Json[]> {
    const { items } = await server.get<Json>(
      "validatingadmissionpolicies",
      `--selector=${GROUP}=admission-node-accounts`,
    );
    return items;
  }
});

describe("IPAM with tokens of two nodes", () => {
  testServer("borrows addresses of another node's block until it is full, and gives them back", async () => {
    const [one, two] = [await allocatorOf("node-1"), await allocatorOf("node-2")];
    const handles = Array.from({ length: 62 }, (_, index) => `borrowed-${index}`);
    for (const handle of handles) await one.assign(request(handle, { node: "node-1" }));
    await expect(two.assign(request("too-many", { node: "node-2" }))).rejects.toThrow("10.0.0.0/26");
    for (const handle of handles) await one.releaseHandle({ handle, node: "node-1" });
    await forgetBorrowings(await storeOf(tokens["node-1"].agent), "node-1");
    await two.releaseHandle({ handle: "of-node-2", node: "node-2" });

    expect(findProblems(await readAllRecords(admin))).toEqual([]);
  });

  testServer("leaves a block in use to nobody, in which others go on, and claims it again", async () => {
    const [one, two] = [await allocatorOf("node-1"), await allocatorOf("node-2")];
    const block = prefix("10.0.0.0/26");
    await one.assign(request("before", { node: "node-1" }));
    expect(await two.releaseAffinity({ node: "node-2", block, inUse: "release" })).toBe("released");
    await one.assign(request("meanwhile", { node: "node-1" }));
    await two.releaseHandle({ handle: "also-of-node-2", node: "node-2" });
    await one.assign(request("after", { node: "node-1" }));
    const [held] = await one.held({ handle: "before", node: "node-1" });
    if (held === undefined) throw new Error("the address is lost");
    await one.releaseAddresses([{ address: held.address, handle: "before" }]);
    for (const handle of ["meanwhile", "after"]) await one.releaseHandle({ handle, node: "node-1" });
    await one.releaseAffinity({ node: "node-1", block, inUse: "keep" });

    const world = await readAllRecords(admin);
    // A block whose addresses rest stays for a while, without an owner of any of them.
    expect([world.blocks.flatMap(({ attributes }) => attributes), world.handles]).toEqual([[], []]);
    expect(findProblems(world)).toEqual([]);
  });

  testServer(
    "takes over an address that is kept for a pod in another node's block, and lets it wait again",
    async () => {
      await seed(admin, poolChange("kept", "10.3.0.0/26", { blockSize: 26 }));
      const [one, two] = [await allocatorOf("node-1"), await allocatorOf("node-2")];
      const handle = keepHandle({ network: "net", namespace: "shop", identity: "pod/db-0" });
      const add = async (allocator: Allocator, node: Node, containerId: string, pool = "kept") => {
        const assigned = await allocator.assign(
          request(`net.${containerId}`, {
            ...{ network: "net", interface: "eth0", node, attributes: { pod: "db-0", namespace: "shop" } },
            addressRequests: [{ kind: "automatic", family: 4, pools: [pool] }],
            keep: { handle, containerId, when: "always", title: 'pod "shop/db-0"' },
          }),
        );
        return textsOf(assigned).join();
      };
      const del = (allocator: Allocator, node: Node, containerId: string) =>
        allocator.releaseHandle({
          ...{ handle: `net.${containerId}`, network: "net", interface: "eth0", node },
          kept: { containerId, handle },
        });
      const kept = await add(two, "node-2", "c1");
      await del(two, "node-2", "c1");
      const inKept = (change: (owner: Json) => void) =>
        replaced("ipamblocks", "10-3-0-0-26", ({ spec }) => change(spec.attributes[0]));
      const refusals = [
        await inKept(({ secondary }) => Object.assign(secondary, { node: "node-2", containerID: "c2" })),
        await inKept(({ secondary }) => Object.assign(secondary, { kept: "0" })),
      ];
      for (const wanted of refusals) expect(await refusalOf("plugin", wanted)).toContain("in blocks of others");

      expect(await add(one, "node-1", "c2")).toBe(kept);
      const otherHandle = await inKept((owner) => {
        Object.assign(owner, { handle_id: "keep-of-another", secondary: { kept: "0", lastNode: "node-1" } });
      });
      expect(await refusalOf("plugin", otherHandle)).toContain("in blocks of others");
      await del(one, "node-1", "c2");
      expect(await add(two, "node-2", "c3")).toBe(kept);
      await del(two, "node-2", "c3");
      await seed(
        admin,
        poolChange("kept", "10.3.0.0/26", { blockSize: 26, disabled: true }),
        poolChange("next", "10.4.0.0/26"),
      );
      // It is given up, and another one taken.
      expect(await add(one, "node-1", "c4", "next")).toStartWith("10.4.0.");
      const world = await readAllRecords(admin);
      expect(world.blocks.flatMap(({ attributes }) => attributes.flatMap((each) => keptOf(each) ?? []))).toHaveLength(
        1,
      );
      expect(findProblems(world)).toEqual([]);
    },
  );

  testServer("works with full blocks of 256 and of 4096 addresses", async () => {
    for (const [name, cidr, blockSize] of [
      ["middle", "10.1.0.0/24", 24],
      ["large", "10.2.0.0/20", 20],
    ] as const) {
      await seed(admin, poolChange(name, cidr, { blockSize }));
      const [one, two] = [await allocatorOf("node-1"), await allocatorOf("node-2")];
      const addressRequests = [{ kind: "automatic", family: 4, pools: [name] }] as const;
      await two.assign(request(`first-${name}`, { node: "node-2", addressRequests } as never));
      await fill(`${name === "middle" ? "10-1-0-0-24" : "10-2-0-0-20"}`);
      await one.assign(request(`borrowed-${name}`, { node: "node-1", addressRequests } as never));
      await one.releaseHandle({ handle: `borrowed-${name}`, node: "node-1" });
    }
  });

  /** All addresses but the last one, each with an owner of its own on node-2. */
  async function fill(name: string): Promise<void> {
    const block = await server.get<Json>("ipamblocks", name);
    const { spec } = block;
    const size = spec.allocations.length;
    spec.attributes = Array.from({ length: size - 1 }, (_, index) => ({
      handle_id: `pods.${"0".repeat(64)}${index}`,
      secondary: { node: "node-2", namespace: "namespace", pod: `pod-${index}`, network: "pods", interface: "eth0" },
    }));
    spec.allocations = spec.allocations.map((_: unknown, index: number) => (index === size - 1 ? null : index));
    spec.unallocated = [size - 1];
    spec.sequenceNumberForAllocation = Object.fromEntries(
      spec.attributes.map((_: unknown, index: number) => [index, 1]),
    );
    await server.kubectl(["replace", "--filename=-"], JSON.stringify(block));
  }
});

/** At the end: its pool would give addresses to the others. */
describe("the records that a token of one node can write", () => {
  const address = (node: string) => `192.0.2.${node.slice(-1)}`;

  async function writeRecord(node: string, spec: object): Promise<void> {
    const annotations = { [`${labelPrefix}node-spec`]: JSON.stringify(spec) };
    const status = { addresses: [{ type: "InternalIP", address: address(node) }] };
    const patch = `--patch=${JSON.stringify({ metadata: { annotations }, status })}`;
    await server.kubectl(["patch", "node", node, "--subresource=status", "--type=merge", patch]);
  }

  /** The plan that the agent of a third node makes of what the API server has. */
  async function planOfThird() {
    const store = await storeOf(tokens["node-2"].agent);
    const stop = new AbortController();
    const options = { signal: stop.signal, watches: "per kind" as const };
    const resources = startReplica(store, { ...ROUTING_KINDS, endpoints: sourceOf(ENDPOINT) }, options);
    const blocks = startReplica(store, ROUTED_BLOCK_KINDS, options);
    const planner = new RoutePlanner("node-3", { isEnabled: true, isBgpEnabled: false });
    for await (const { changes } of resources.updates()) {
      planner.update(resourceFacts(changes, "node-3"));
      break;
    }
    for await (const { changes } of blocks.updates()) {
      planner.update(blockFacts(changes));
      break;
    }
    stop.abort();
    await Promise.all([resources.ended, blocks.ended]);
    return planner.plan;
  }

  testServer("lead no packets of others to it", async () => {
    await seed(admin, poolChange("tunnels", "10.9.0.0/24", { blockSize: 26, vxlanMode: "Always" }));
    const addressRequests = [{ kind: "automatic", family: 4, pools: ["tunnels"] }] as const;
    const tunnels = new Map<string, Address>();
    const tunnelOf = (node: string) => tunnels.get(node) ?? { family: 4, value: 0n };
    await server.apply(JSON.stringify({ apiVersion: "v1", kind: "Node", metadata: { name: "node-3" } }));
    for (const node of ["node-1", "node-2", "node-3"]) {
      const allocator = openAllocator(admin, means({ now: () => new Date() }));
      const handle = `vxlan-tunnel-addr-${node}`;
      const attributes = { type: "vxlanTunnelAddress" };
      const { addresses } = await allocator.assign(request(handle, { node, attributes, addressRequests } as never));
      for (const each of addresses) tunnels.set(node, each.address);
      await writeRecord(node, {
        bgp: { ipv4Address: `${address(node)}/24` },
        ipv4VXLANTunnelAddr: formatAddress(tunnelOf(node)),
        vxlanTunnelMACAddr: vxlanMac(node, 4),
      });
    }
    const honest = await planOfThird();
    expect([honest.problems, honest.peers.size]).toEqual([[], 2]);

    const client = await clientOf(tokens["node-1"].agent);
    const write = async (wanted: KubeRequest) => expect((await client.request(wanted)).status).toBeLessThan(300);
    await write(
      record({
        bgp: { ipv4Address: `${address("node-2")}/24` },
        ipv4VXLANTunnelAddr: formatAddress(tunnelOf("node-2")),
        vxlanTunnelMACAddr: vxlanMac("node-2", 4),
      }),
    );
    const inside = formatAddress(nthAddress(prefixAround(tunnelOf("node-2"), 26), 5) ?? tunnelOf("node-2"));
    for (const text of [inside, address("node-2")]) {
      await write(creation(`${text.replaceAll(".", "-")}-32`, `${text}/32`, [null]));
    }
    await client.close();

    const stolen = await planOfThird();
    const words = [address("node-1"), formatAddress(tunnelOf("node-1")), "node-1:"];
    const ofOthers = planLines(honest).filter((line) => !line.split(" ").some((word) => words.includes(word)));
    expect(ofOthers.length).toBeGreaterThan(3);
    expect(planLines(stolen)).toEqual(ofOthers);
    const problems = stolen.problems.join("\n");
    expect(problems).toContain(`Block ${inside}/32 of node "node-1" does not count`);
    expect(problems).toContain(`Block ${address("node-2")}/32 of node "node-1" does not count`);
    expect(problems).toContain('its address 192.0.2.2: the kubelet of node "node-2" reports it');
    expect(problems).toContain('IPAM holds it for node "node-2"');
  });
});
