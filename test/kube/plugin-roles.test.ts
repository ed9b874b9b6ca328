/** The built plugin under its role in `deploy/rbac`: the role is enough, and an error names a permission that is missing. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { identity, PRODUCT_API } from "../../src/identity.ts";
import { type Permission, permissionsOf, roleName, roleObject } from "../../src/release/roles/role-files.ts";
import { startAgent } from "../agent/agent.ts";
import { type Host, hostProblem, openHost } from "../support/host.ts";
import { type ApiServer, apiServerProblem, startApiServer } from "../support/kube-apiserver.ts";
import { customResource } from "../support/kube-resources.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";

const problem = apiServerProblem() ?? hostProblem();
const testServer = testNeeding(problem);

const DATASTORE = "kubernetes";
const PERMISSIONS = permissionsOf(DATASTORE);
const NAMESPACE = "shop";

const KINDS = {
  clusterinformations: "ClusterInformation",
  ipamconfigurations: "IPAMConfiguration",
  ippools: "IPPool",
  ipreservations: "IPReservation",
  ipaddresslists: "IPAddressList",
  ipamblocks: "IPAMBlock",
  ipamhandles: "IPAMHandle",
  blockaffinities: "BlockAffinity",
};

/** Needed only by the node agent, which copies these records. */
const NEEDED_BY_AGENT: readonly string[] = [
  "list ipamconfigurations",
  "watch ipamconfigurations",
  "watch ippools",
  "watch ipreservations",
];

/** Not needed in the ordinary life of a node; `lifeInSmallPools()` needs them. */
const NEEDED_IN_SMALL_POOLS: Readonly<Record<string, string>> = {
  "patch ippools": "the first block of a pool",
  "delete ipamblocks": "a pool that no longer selects the node",
  "delete blockaffinities": "a pool that no longer selects the node",
  "list ipamblocks": "pools that are nearly full",
  "get blockaffinities": "a block of another node, of which an address is borrowed",
  "update ipamhandles": "a handle with addresses of several commits",
};

/** After a write whose response was lost; `roles.test.ts` shows their messages. */
const NEEDED_AFTER_LOSS: readonly string[] = ["get ippools"];

/**
 * Without the first the annotations of namespaces have no effect, `pod-facts.test.ts` shows the warning; the second is for pods
 * that name a list, as those of `address-choice.test.ts`.
 */
const NOT_REQUIRED: readonly string[] = ["get namespaces", "get ipaddresslists"];

interface Pod {
  readonly name: string;
  readonly node: string;
  readonly uid: string;
}

let server: ApiServer;
let host: Host;
let kubeconfig: string;
let nodes = 0;

beforeAll(async () => {
  if (problem !== undefined) return;
  host = await openHost();
  // The roles must be enough for servers that cannot send a list as the beginning of a watch.
  const apiServerFlags = ["--feature-gates=WatchList=false"];
  server = await startApiServer({ place: { netns: host.netns, address: "127.0.0.1" }, apiServerFlags });
  const definitions = Object.entries(KINDS).map(([plural, kind]) =>
    customResource({ ...PRODUCT_API, plural, kind, namespaced: false }),
  );
  await server.apply(listOf(definitions));
  await server.kubectl(["wait", "--for=condition=Established", "--timeout=30s", "crd", "--all"]);
  await server.apply(
    listOf([
      resource("ClusterInformation", "default", { datastoreReady: true, clusterGUID: "test" }),
      resource("IPPool", "blue", { cidr: "10.50.0.0/16" }),
    ]),
  );
  await server.createNamespace(NAMESPACE);
  const role = `../../deploy/rbac/${roleName(DATASTORE, identity)}.yaml`;
  await server.apply(await Bun.file(join(import.meta.dir, role)).text());
  const token = await server.kubectl(["create", "token", identity.product, "--namespace=kube-system"]);
  kubeconfig = server.credentials.writeKubeconfig("plugin", { token: token.trim() });
}, 60_000);

afterAll(async () => {
  await server?.stop();
  await host?.[Symbol.asyncDispose]();
});

describe("the plugin with the orchestrator's API as its datastore", () => {
  testServer("needs no more than its role", async () => {
    expect(await lifeOfNode()).toEqual([]);
  });

  testServer("names the permission that its role lacks", async () => {
    const others = [...NEEDED_BY_AGENT, ...Object.keys(NEEDED_IN_SMALL_POOLS), ...NEEDED_AFTER_LOSS, ...NOT_REQUIRED];
    for (const missing of PERMISSIONS.filter((each) => !others.includes(textOf(each)))) {
      await expectNamed(missing, lifeOfNode);
    }
  });

  testServer("needs no more than its role in small pools, and names the permission that it lacks there", async () => {
    await server.kubectl(["replace", "--filename=-"], JSON.stringify(roleObject(DATASTORE, identity, PERMISSIONS)));
    const isFull = (errors: readonly CniError[]) => errors.map(({ code }) => code).join() === "102";
    await pollUntil(async () => isFull(await lifeInSmallPools()), "only the full pool to refuse an ADD");
    const found = PERMISSIONS.filter((each) => NEEDED_IN_SMALL_POOLS[textOf(each)] !== undefined);
    expect(found).toHaveLength(Object.keys(NEEDED_IN_SMALL_POOLS).length);
    for (const missing of found) await expectNamed(missing, lifeInSmallPools);
  });

  testServer("in the node agent: its log names the permission that its copies lack, and ADD goes on", async () => {
    const found = PERMISSIONS.filter((each) => NEEDED_BY_AGENT.includes(textOf(each)));
    expect(found.map(textOf).toSorted()).toEqual(NEEDED_BY_AGENT.toSorted());
    for (const missing of found) {
      await takeAway(missing);
      await pollUntil(() => isRefused(missing), `the role without ${textOf(missing)}`);
      const agent = await startAgent(host);
      const [pod] = await makePods();
      expect(await call("ADD", pod)).toMatchObject({ code: 0 });
      const words = `the role lacks the permission to ${textOf(missing)}`;
      await pollUntil(() => agent.log().includes(words), `the log of the agent to say "${words}"`);
      expect(agent.log()).toContain(`resources: ["${missing.resource}"], verbs: ["${missing.verb}"]} to the role`);
      expect(await call("DEL", pod)).toMatchObject({ code: 0 });
      await agent.signal("TERM");
      await agent.ended;
    }
  });
});

type Life = (words?: string) => Promise<readonly CniError[]>;

/** Without the permission, the life has an error that names it. */
async function expectNamed(missing: Permission, life: Life): Promise<void> {
  await takeAway(missing);
  expect([textOf(missing), await errorOf(`the role lacks the permission to ${textOf(missing)}`, life)]).toEqual([
    textOf(missing),
    expect.objectContaining({ msg: expect.stringContaining(`to ${textOf(missing)}`), code: expect.any(Number) }),
  ]);
}

async function takeAway(missing: Permission): Promise<void> {
  const others = PERMISSIONS.filter((each) => each !== missing);
  await server.kubectl(["replace", "--filename=-"], JSON.stringify(roleObject(DATASTORE, identity, others)));
}

/** The API server learns of a changed role a moment later. */
async function isRefused({ verb, resource: name, group }: Permission): Promise<boolean> {
  const place = group === "" ? name : `${name}.${group}`;
  const user = `--as=system:serviceaccount:kube-system:${identity.product}`;
  return server.kubectl(["auth", "can-i", verb, place, user]).then(
    () => false,
    () => true,
  );
}

interface CniError {
  readonly code: number;
  readonly msg: string;
}

/** The error with these words; the role may take a moment to change. */
async function errorOf(words: string, life: Life): Promise<CniError | undefined> {
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const found = (await life(words)).find(({ msg }) => msg.includes(words));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** A new node with two pods, and a GC for what is left of the second; returns the errors, and stops at one with `words`. */
async function lifeOfNode(words?: string): Promise<readonly CniError[]> {
  const [first, second] = await makePods();
  return errorsOf(words, [
    ["ADD", first],
    ["ADD", second],
    ["DEL", first],
    ["GC", second],
  ]);
}

/** New pools that are soon full: blocks with one address, and a single block that two nodes use. */
async function lifeInSmallPools(words?: string): Promise<readonly CniError[]> {
  const [[first, second], [other]] = [await makePods(), await makePods()];
  const name = (kind: string) => `${kind}-${nodes}`;
  await server.apply(
    listOf([
      resource("IPPool", name("single"), { cidr: `10.51.${nodes}.0/31`, blockSize: 32, nodeSelector: "has(small)" }),
      resource("IPPool", name("shared"), { cidr: `10.52.${nodes}.0/30`, blockSize: 30 }),
      resource("IPPool", name("six"), { cidr: `fd51:${nodes}::/122` }),
    ]),
  );
  const single = { ipv4_pools: [name("single")] };
  const shared = { ipv4_pools: [name("shared")] };
  await server.kubectl(["label", "node", first.node, "small=yes"]);
  const before = await errorsOf(words, [
    ["ADD", first, single],
    ["ADD", second, single],
    ["ADD", other, single],
    ["DEL", first],
    ["DEL", second],
  ]);
  await letAddressesRest();
  await server.kubectl(["label", "node", first.node, "small-"]);
  const after = await errorsOf(words, [
    ["ADD", first, shared],
    ["ADD", other, shared],
    ["ADD", first, { ...shared, assign_ipv6: "true", ipv6_pools: [name("six")] }],
    ["DEL", other],
    ["DEL", first],
  ]);
  return [...before, ...after];
}

/** As if three minutes had passed: an empty block whose addresses rest is not deleted. */
async function letAddressesRest(): Promise<void> {
  const { items } = JSON.parse(await server.kubectl(["get", "ipamblocks", "--output=json"]));
  for (const { metadata, spec } of items) {
    const patch = '[{"op":"remove","path":"/spec/released"}]';
    if (spec.released) await server.kubectl(["patch", "ipamblock", metadata.name, "--type=json", `--patch=${patch}`]);
  }
}

type Call = readonly [command: "ADD" | "DEL" | "GC", pod: Pod, ipam?: object];

async function errorsOf(words: string | undefined, calls: readonly Call[]): Promise<readonly CniError[]> {
  const errors: CniError[] = [];
  for (const [command, pod, ipam] of calls) {
    const { code, stdout } = await call(command, pod, ipam);
    if (code !== 0) errors.push(JSON.parse(stdout));
    if (words !== undefined && errors.at(-1)?.msg.includes(words)) break;
  }
  return errors;
}

async function makePods(): Promise<readonly [Pod, Pod]> {
  nodes += 1;
  const node = `node-${nodes}`;
  const names = [`${node}-a`, `${node}-b`];
  const spec = { nodeName: node, containers: [{ name: "main", image: "none" }] };
  const pods = names.map((name) => ({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: NAMESPACE }, spec }));
  const objects = [{ apiVersion: "v1", kind: "Node", metadata: { name: node } }, ...pods];
  const made = await server.kubectl(["create", "--output=json", "--filename=-"], listOf(objects));
  // Several objects are printed one after another.
  const uids = [...made.matchAll(/^ {8}"uid": "(.+)"/gm)].map(([, uid]) => uid ?? "");
  for (const name of names) await host.must(["ip", "netns", "add", name]);
  const [first, second] = names.map((name, index) => ({ name, node, uid: uids[index + 1] ?? "" }));
  if (first === undefined || second === undefined) throw new Error("no pods");
  return [first, second];
}

function call(command: "ADD" | "DEL" | "GC", { name, node, uid }: Pod, ipam: object = {}) {
  const config = {
    cniVersion: "1.1.0",
    name: "net",
    type: identity.product,
    nodename: node,
    datastore_type: DATASTORE,
    kubernetes: { kubeconfig },
    ipam: { type: identity.ipamType, ...ipam },
    ...(command === "GC" ? { "cni.dev/valid-attachments": [] } : {}),
  };
  return host.run([builtProgram()], {
    stdin: JSON.stringify(config),
    environment: {
      CNI_COMMAND: command,
      CNI_CONTAINERID: `container-${name}`,
      CNI_NETNS: `/run/netns/${name}`,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/usr/lib/cni",
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=${NAMESPACE};K8S_POD_NAME=${name};K8S_POD_UID=${uid}`,
    },
    limitMilliseconds: 60_000,
  });
}

function textOf({ verb, resource: name }: Permission): string {
  return `${verb} ${name}`;
}

function resource(kind: string, name: string, spec: object): object {
  return { apiVersion: `${PRODUCT_API.group}/${PRODUCT_API.version}`, kind, metadata: { name }, spec };
}

function listOf(items: readonly object[]): string {
  return JSON.stringify({ apiVersion: "v1", kind: "List", items });
}
