import { describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside } from "../../../test/support/admin-context.ts";
import { registerAsAgent } from "../../../test/support/agent-registration.ts";
import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import type { KubeClient } from "../../kube/api.ts";
import type { HostAddress } from "../../linux/rtnetlink/host-addresses.ts";
import { AGENT_VERSION_ANNOTATION } from "../../model/agent-version-annotation.ts";
import { hashMachineId, MACHINE_ANNOTATION, MACHINE_SINCE_ANNOTATION } from "../../model/machine-annotation.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../main/command.ts";

function addresses(...given: readonly (readonly [text: string, isOfUplink: boolean])[]): readonly HostAddress[] {
  return given.map(([text, isOfUplink]) => {
    const parsed = parseInterfaceAddress(text);
    if (parsed === undefined) throw new Error(`not an address: ${text}`);
    const defaultRoutes = isOfUplink ? ([4, 6] as const) : [];
    return { ...parsed, link: { name: isOfUplink ? "eth0" : "eth1", mtu: 1500, defaultRoutes } };
  });
}

function site(surroundings: AdminSurroundings = {}) {
  const store = openMemory();
  const run = (words: string, more: AdminSurroundings = {}) =>
    runInside(words.split(" "), { store, ...surroundings, ...more });
  const nodes = async () => JSON.parse((await run("get nodes -o json")).stdout).items[0];
  const registerByAgent = (more: AdminSurroundings = {}) => registerAsAgent({ store, ...surroundings, ...more });
  return { run, nodes, registerByAgent };
}

describe("node register", () => {
  const UPLINK = addresses(["10.0.0.5/24", true], ["172.17.0.1/16", false], ["fd00::5/64", true]);

  test("creates the Node of this host, under the host name in lower case, with the addresses of its uplink", async () => {
    const { run, nodes } = site({ hostName: "Host-A", hostAddresses: UPLINK });

    expect(await run("node register")).toMatchObject({ code: EXIT_OK, stdout: "node/host-a created\n" });
    expect(await nodes()).toMatchObject({
      metadata: { name: "host-a" },
      spec: {
        bgp: { ipv4Address: "10.0.0.5/24", ipv6Address: "fd00::5/64" },
        addresses: [
          { address: "10.0.0.5/24", type: "InternalIP" },
          { address: "fd00::5/64", type: "InternalIP" },
        ],
      },
    });
  });

  test("takes all addresses of a host without a default route", async () => {
    const { run, nodes } = site({ hostAddresses: addresses(["192.0.2.1/32", false]) });
    await run("node register");

    expect((await nodes()).spec.bgp).toEqual({ ipv4Address: "192.0.2.1/32" });
  });

  test("keeps labels and other fields of an existing Node, and changes nothing if nothing is new", async () => {
    const { run, nodes } = site({ hostName: "a", hostAddresses: UPLINK });
    await run("node register");
    await run("label node a rack=r1");
    await run('patch node a -p {"spec":{"bgp":{"asNumber":64512}}}');

    expect((await run("node register")).stdout).toBe("node/a unchanged\n");
    const moved = addresses(["10.0.0.6/24", true]);
    expect((await run("node register", { hostAddresses: moved })).stdout).toBe("node/a updated\n");
    expect(await nodes()).toMatchObject({
      metadata: { labels: { rack: "r1" } },
      spec: { bgp: { asNumber: 64512, ipv4Address: "10.0.0.6/24" }, addresses: [{ address: "10.0.0.6/24" }] },
    });
  });

  test("finds the addresses by the methods of NodeAgentConfiguration, and warns if one finds nothing", async () => {
    const { run, nodes } = site({ hostName: "a", hostAddresses: UPLINK });
    const configure = (name: string, spec: object) => {
      const resource = { apiVersion: API_VERSION, kind: "NodeAgentConfiguration", metadata: { name }, spec };
      return run("apply -f -", { stdin: JSON.stringify(resource) });
    };
    const sourceTowards = async (destination: string) =>
      destination === "gateway.example.org" ? parseInterfaceAddress("172.17.0.1/16")?.address : undefined;
    await configure("default", { ipv4AddressDetection: "interface=eth1", ipv6AddressDetection: "none" });
    await run("node register");
    expect((await nodes()).spec.bgp).toEqual({ ipv4Address: "172.17.0.1/16" });

    await configure("node.a", { ipv4AddressDetection: "first-found" });
    await run("node register");
    expect((await nodes()).spec.bgp).toEqual({ ipv4Address: "10.0.0.5/24" });

    await configure("node.a", { ipv4AddressDetection: "can-reach=gateway.example.org" });
    await run("node register", { sourceTowards });
    expect((await nodes()).spec.bgp).toEqual({ ipv4Address: "172.17.0.1/16" });

    await configure("node.a", { ipv4AddressDetection: "kubernetes-internal-ip" });
    const warned = await run("node register");
    expect(warned.code).toBe(EXIT_OK);
    expect(warned.stderr).toContain(
      'by "kubernetes-internal-ip": the orchestrator\'s Node cannot be read; 172.17.0.1/16 stays',
    );
    expect((await nodes()).spec.bgp).toEqual({ ipv4Address: "172.17.0.1/16" });
  });

  test("refuses a name that another machine has registered, unless forced", async () => {
    const { run, nodes } = site({ hostName: "a" });
    await run("node register");
    const refused = await run("node register", { machineIdentity: "other-machine" });

    expect(refused.code).toBe(EXIT_FAILED);
    for (const each of ["this-machine", "other-machine", "--force"]) expect(refused.stderr).toContain(each);
    const replacing = { machineIdentity: "other-machine", now: new Date("2026-01-03T00:00:00Z") };
    expect((await run("node register --force", replacing)).code).toBe(EXIT_OK);
    await run("node register", { machineIdentity: "other-machine", now: new Date("2026-01-04T00:00:00Z") });
    expect((await nodes()).metadata.annotations).toEqual({
      [MACHINE_ANNOTATION]: "other-machine",
      [MACHINE_SINCE_ANNOTATION]: "2026-01-03T00:00:00.000Z",
    });
  });

  test("takes the name that the plugins use: that of the installed network config", async () => {
    const plugin = { type: identity.product, nodename: "from-config", ipam: { type: identity.ipamType } };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const { run } = site({ files: { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list } });

    expect((await run("node register")).stdout).toBe("node/from-config created\n");
    expect((await run("node register --name other")).stdout).toBe("node/other created\n");
    expect((await run("node register --name a/b")).code).toBe(EXIT_USAGE);
  });

  test("for the agent, does nothing without an installed network config, and prints only changes", async () => {
    const plugin = { type: identity.product, nodename: "from-config", ipam: { type: identity.ipamType } };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };
    const { run, registerByAgent } = site();
    const register = async (more: AdminSurroundings = {}) => (await registerByAgent(more)).stdout;

    expect(await register()).toBe("");
    expect((await run("get nodes -o json")).stdout).toContain('"items": []');
    expect(await register({ files })).toBe("node/from-config created\n");
    expect(await register({ files })).toBe("");
  });

  test("for the agent, leaves the addresses of a Node that exists to the loop of the agent that follows them", async () => {
    const plugin = { type: identity.product, nodename: "a", ipam: { type: identity.ipamType } };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };
    const { nodes, registerByAgent } = site({ hostName: "a", hostAddresses: UPLINK, files });
    expect((await registerByAgent()).stdout).toBe("node/a created\n");
    const { spec } = await nodes();
    expect(spec.bgp).toEqual({ ipv4Address: "10.0.0.5/24", ipv6Address: "fd00::5/64" });

    // What a registration has read may be older than what that loop has written meanwhile.
    const others = addresses(["10.0.0.6/24", true]);
    expect((await registerByAgent({ hostAddresses: others, version: "v9.9.9" })).stdout).toBe("node/a updated\n");
    expect((await nodes()).spec).toEqual(spec);
  });

  test("for the agent, records its release in a node of the cluster, also if the kubelet changes the node meanwhile", async () => {
    const store = openMemory();
    const plugin = {
      type: identity.product,
      datastore_type: "kubernetes",
      nodename: "a",
      ipam: { type: identity.ipamType },
    };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };
    const { run, nodes, registerByAgent } = site({ store, hostName: "a" });
    await run("node register");
    let races = 2;
    const commit: typeof store.commit = async (changes) => {
      races -= 1;
      return races < 0 ? store.commit(changes) : { ok: false, reason: "stale", key: "" };
    };
    const raced: typeof store = Object.assign(Object.create(store), { commit });

    expect((await registerByAgent({ files, store: raced })).stdout).toBe("node/a updated\n");
    expect((await nodes()).metadata.annotations).toHaveProperty([AGENT_VERSION_ANNOTATION]);
  });
});

describe("the orchestrator's name of a node", () => {
  const KUBERNETES = { kubernetes: { kubeconfig: "/etc/vendor/kubeconfig" } };

  /** A host with a network config, and an API that has these nodes. */
  function cluster(
    nodes: readonly string[],
    { host = "Host-A", ...config }: { readonly host?: string } & Readonly<Record<string, unknown>> = KUBERNETES,
  ) {
    const plugin = { type: identity.product, nodename: "ours", ipam: { type: identity.ipamType }, ...config };
    const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };
    const requests: string[] = [];
    const client: KubeClient = {
      async request({ method, path }) {
        requests.push(`${method} ${path}`);
        const isThere = nodes.includes(path.slice("/api/v1/nodes/".length));
        return isThere ? { status: 200, text: "{}" } : { status: 404, text: '{"kind":"Status"}' };
      },
      watch: () => {
        throw new Error("nothing is watched");
      },
      close: async () => {},
    };
    return { surroundings: { files, hostName: host, openKubeClient: async () => client }, requests };
  }
  const UNREACHABLE = {
    openKubeClient: () => Promise.reject(new PluginError("api-unavailable", "Cannot reach the API")),
  };
  const ref = (nodeName: string) => ({ nodeName, orchestrator: "k8s" });

  async function registered(surroundings: AdminSurroundings, words?: string) {
    const { run, nodes, registerByAgent } = site();
    const result = await (words === undefined ? registerByAgent(surroundings) : run(words, surroundings));
    return { ...result, orchRefs: (await nodes()).spec.orchRefs, run, nodes, registerByAgent };
  }

  test.each([
    [
      "the one in the config, before all others",
      ["configured", "ours"],
      { ...KUBERNETES.kubernetes, node_name: "configured" },
      "configured",
    ],
    ["ours, before the host's", ["ours", "host-a"], KUBERNETES.kubernetes, "ours"],
    ["the host name in lower case", ["host-a"], KUBERNETES.kubernetes, "host-a"],
  ])("is recorded: %s", async (_, nodes, kubernetes, expected) => {
    const { surroundings } = cluster(nodes, { kubernetes });

    for (const words of [undefined, "node register"]) {
      expect((await registered(surroundings, words)).orchRefs).toEqual([ref(expected)]);
    }
  });

  test("is asked for once: no request while the most likely name is recorded", async () => {
    const { surroundings, requests } = cluster(["ours"]);
    const { registerByAgent } = await registered(surroundings);
    expect(requests).toEqual(["GET /api/v1/nodes/ours"]);

    expect((await registerByAgent(surroundings)).stdout).toBe("");
    expect(requests).toHaveLength(1);
  });

  test("replaces that of another node, and leaves references of other orchestrators", async () => {
    const { run, nodes, registerByAgent } = site();
    await run("node register --name ours");
    const orchRefs = [{ nodeName: "vm-7", orchestrator: "openstack" }, ref("former")];
    await run(`patch node ours -p ${JSON.stringify({ spec: { orchRefs } })}`);
    await registerByAgent(cluster(["former", "host-a"]).surroundings);

    expect((await nodes()).spec.orchRefs).toEqual([orchRefs[0], ref("host-a")]);
  });

  test("stays as it is recorded if the API has none of the names, or cannot be reached", async () => {
    const { run, nodes, registerByAgent } = await registered(cluster(["host-a"]).surroundings);
    const { surroundings } = cluster([]);
    for (const more of [{}, UNREACHABLE]) {
      const { code, stdout } = await registerByAgent({ ...surroundings, ...more });
      expect([code, stdout]).toEqual([EXIT_OK, ""]);
      expect((await nodes()).spec.orchRefs).toEqual([ref("host-a")]);
    }
    expect((await run("node register", { ...surroundings, ...UNREACHABLE })).stderr).toContain("Cannot reach the API");
  });

  test("is needed for a Node that the agent creates, if the API can tell it later", async () => {
    const { run, nodes, registerByAgent } = site();
    const { surroundings } = cluster(["host-a"]);
    const refused = await registerByAgent({ ...surroundings, ...UNREACHABLE });
    expect([refused.code, refused.stderr]).toEqual([EXIT_FAILED, expect.stringContaining("Cannot reach the API")]);
    expect(await nodes()).toBeUndefined();

    expect((await run("node register", { ...surroundings, ...UNREACHABLE })).code).toBe(EXIT_OK);
    expect((await registerByAgent({ ...surroundings, ...UNREACHABLE })).code).toBe(EXIT_OK);
    await registerByAgent(surroundings);
    expect((await nodes()).spec.orchRefs).toEqual([ref("host-a")]);
  });

  test("is needed for a Node that the agent creates: an agent that runs on does not register a deleted node again", async () => {
    const { run, nodes, registerByAgent } = await registered(cluster(["ours"]).surroundings);
    const { surroundings } = cluster([]);
    expect((await registerByAgent(surroundings)).code).toBe(EXIT_OK);
    await run("delete node ours");
    const refused = await registerByAgent(surroundings);
    expect(refused.code).toBe(EXIT_FAILED);
    for (const each of ['"ours" or "host-a"', "kubernetes.node_name", "node register"])
      expect(refused.stderr).toContain(each);
    expect(await nodes()).toBeUndefined();

    expect((await registerByAgent(cluster(["ours"]).surroundings)).code).toBe(EXIT_OK);
    expect((await nodes()).spec.orchRefs).toEqual([ref("ours")]);
  });

  test("is not needed for a host that an administrator registers", async () => {
    const { run, nodes, registerByAgent } = site();
    const { surroundings } = cluster([]);
    expect((await run("node register", surroundings)).code).toBe(EXIT_OK);
    expect((await registerByAgent(surroundings)).code).toBe(EXIT_OK);
    expect((await nodes()).spec.orchRefs).toBeUndefined();
  });

  test("is not waited for if the role does not allow to ask", async () => {
    const { surroundings } = cluster([]);
    const client = { ...(await surroundings.openKubeClient()), request: async () => ({ status: 403, text: "{}" }) };
    const { code, stderr } = await registered({ ...surroundings, openKubeClient: async () => client });
    expect([code, stderr]).toEqual([EXIT_OK, expect.stringContaining("403 Forbidden")]);
  });

  test.each([
    ["without access to the orchestrator's API", {}],
    ["with a name that the API cannot have", { kubernetes: { ...KUBERNETES.kubernetes, node_name: ".." } }],
    ["with the embedded datastore", { ...KUBERNETES, datastore_type: "embedded" }],
  ])("is not asked for on a host %s", async (_, config) => {
    const { surroundings, requests } = cluster(["ours", "host-a", ".."], config);

    expect((await registered(surroundings)).orchRefs).toBeUndefined();
    expect(requests).toEqual([]);
  });

  test("a host that is registered under a given name needs no usable network config", async () => {
    const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conf`]: JSON.stringify({ type: identity.product }) };

    expect(
      (await registered({ files, env: { ETCD_ENDPOINTS: "http://127.0.0.1:1" } }, "node register --name a")).code,
    ).toBe(EXIT_OK);
  });
});

describe("a machine that replaces another one under its name", () => {
  const KUBERNETES = { kubernetes: { kubeconfig: "/etc/vendor/kubeconfig" } };
  const plugin = { type: identity.product, nodename: "a", ipam: { type: identity.ipamType }, ...KUBERNETES };
  const list = JSON.stringify({ name: "pods", cniVersion: "1.0.0", plugins: [plugin] });
  const files = { [`${NETWORK_CONFIG_DIRECTORY}/10-pods.conflist`]: list };

  /** An API whose Node "a" was created then, by the kubelet of that machine. */
  function api(creationTimestamp: string, machineID: string): Pick<AdminSurroundings, "openKubeClient"> {
    const node = { metadata: { name: "a", creationTimestamp }, status: { nodeInfo: { machineID } } };
    const client: KubeClient = {
      request: async () => ({ status: 200, text: JSON.stringify(node) }),
      watch: () => {
        throw new Error("nothing is watched");
      },
      close: async () => {},
    };
    return { openKubeClient: async () => client };
  }
  const on = (machine: string, now: string) => ({ machineIdentity: hashMachineId(machine), now: new Date(now) });

  /** The first machine registered at noon, under a Node that was created a minute earlier. */
  async function registeredAtNoon() {
    const { nodes, run, registerByAgent } = site({ files, hostName: "a" });
    await registerByAgent({ ...api("2026-01-01T11:59:00Z", "first"), ...on("first", "2026-01-01T12:00:00Z") });
    const annotations = async () => (await nodes()).metadata.annotations;
    return { run, registerByAgent, annotations };
  }

  test("is registered by its agent if the Node was created again and its kubelet reports this machine", async () => {
    const { registerByAgent, annotations } = await registeredAtNoon();
    const second = { ...api("2026-01-01T13:00:00Z", "second"), ...on("second", "2026-01-01T13:05:00Z") };
    const { code, stdout, stderr } = await registerByAgent(second);

    expect([code, stdout]).toEqual([EXIT_OK, "node/a updated\n"]);
    expect(stderr).toContain("was created after another machine had registered it");
    expect(await annotations()).toMatchObject({
      [MACHINE_ANNOTATION]: hashMachineId("second"),
      [MACHINE_SINCE_ANNOTATION]: "2026-01-01T13:05:00.000Z",
    });
  });

  test.each<[string, AdminSurroundings]>([
    ["the Node is the one that the other machine registered under", api("2026-01-01T11:59:00Z", "second")],
    ["the Node was created again by the other machine", api("2026-01-01T13:00:00Z", "first")],
    ["the kubelet has not reported its machine", api("2026-01-01T13:00:00Z", "")],
    ["the Node does not say when it was created", api("", "second")],
    [
      "the API cannot be reached",
      { openKubeClient: () => Promise.reject(new PluginError("api-unavailable", "Cannot reach the API")) },
    ],
  ])("is refused if %s", async (_, orchestrator) => {
    const { registerByAgent, annotations } = await registeredAtNoon();
    const refused = await registerByAgent({ ...orchestrator, ...on("second", "2026-01-01T13:05:00Z") });

    expect(refused.code).toBe(EXIT_FAILED);
    expect(refused.stderr).toContain("another machine has registered it");
    expect(await annotations()).toMatchObject({ [MACHINE_ANNOTATION]: hashMachineId("first") });
  });

  test("takes a name once for each Node, also if its clock is slow: two machines do not take it in turns", async () => {
    const { registerByAgent, annotations } = await registeredAtNoon();
    const slow = on("second", "2025-12-31T00:00:00Z");
    expect((await registerByAgent({ ...api("2026-01-01T13:00:00Z", "second"), ...slow })).code).toBe(EXIT_OK);
    expect(await annotations()).toMatchObject({ [MACHINE_SINCE_ANNOTATION]: "2026-01-01T13:00:00.000Z" });

    const first = { ...api("2026-01-01T13:00:00Z", "first"), ...on("first", "2026-01-01T13:06:00Z") };
    expect((await registerByAgent(first)).code).toBe(EXIT_FAILED);
  });

  test("is refused for a Node without a reference: it is not a node of the orchestrator", async () => {
    const { run, registerByAgent } = await registeredAtNoon();
    await run('patch node a -p {"spec":{"orchRefs":[]}}');
    const second = { ...api("2026-01-01T13:00:00Z", "second"), ...on("second", "2026-01-01T13:05:00Z") };

    expect((await registerByAgent(second)).code).toBe(EXIT_FAILED);
  });
});
