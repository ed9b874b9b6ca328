import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, type AdminSurroundings, runInside } from "../../../../test/support/admin-context.ts";
import {
  address,
  listChange,
  means,
  nodeChange,
  poolChange,
  request,
  seed,
  textsOf,
} from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { openAllocator } from "../../../ipam/allocator.ts";
import type { AssignRequest } from "../../../ipam/request.ts";
import type { KubeClient, KubeResponse } from "../../../kube/api.ts";
import { blocksPrefix, resourceKey } from "../../../model/keys.ts";
import { workloadEndpointName } from "../../../model/workload-endpoint-name.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
const CONFIG_FILE = "/etc/cni/net.d/10-test.conflist";
const CNI = identity.annotationPrefix;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(
    store,
    poolChange("blue", "10.1.0.0/16"),
    poolChange("closed", "10.2.0.0/16", { disabled: true }),
    poolChange("east", "10.3.0.0/16", { nodeSelector: "zone == 'east'" }),
    poolChange("tunnels", "10.4.0.0/16", { allowedUses: ["Tunnel"] }),
    poolChange("six", "fd00::/64"),
    nodeChange("node-1", { zone: "west" }),
    nodeChange("node-2"),
  );
});

interface Attached {
  readonly pod?: string;
  readonly workload?: string;
  readonly addressRequests?: AssignRequest["addressRequests"];
  readonly node?: string;
}

/** As the network plugin attaches a container. */
async function attach(
  containerId: string,
  { pod, workload, addressRequests, node = "node-1" }: Attached = {},
): Promise<void> {
  const owner = { network: "net", interface: "eth0", node, ...(addressRequests && { addressRequests }) } as const;
  const addresses = textsOf(await openAllocator(store, means()).assign(request(`net.${containerId}`, owner)));
  await putEndpoint(containerId, { pod, workload, node, addresses });
}

async function putEndpoint(
  containerID: string,
  place: {
    pod?: string | undefined;
    workload?: string | undefined;
    node: string;
    addresses: readonly string[];
    floating?: readonly string[];
  },
): Promise<void> {
  const { pod, workload, node, addresses, floating = [] } = place;
  const orchestrator = pod === undefined ? "cni" : "k8s";
  const named = workloadEndpointName({ node, orchestrator, workload: pod ?? containerID, endpoint: "eth0" });
  const name = named.ok ? named.name : "";
  const spec = {
    ...{ orchestrator, node, containerID, endpoint: "eth0" },
    ...{ ipNetworks: addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`) },
    ...(floating.length === 0
      ? {}
      : { ipNATs: floating.map((externalIP) => ({ internalIP: addresses[0], externalIP })) }),
    ...(pod === undefined ? {} : { pod }),
    ...(workload === undefined ? {} : { workload }),
  };
  const value = JSON.stringify({
    apiVersion: API_VERSION,
    kind: "WorkloadEndpoint",
    metadata: { name, namespace: "default" },
    spec,
  });
  await seed(store, { kind: "put", key: resourceKey("workloadendpoints", { namespace: "default", name }), value });
}

interface Cluster {
  readonly pod?: Readonly<Record<string, string>>;
  readonly namespace?: Readonly<Record<string, string>>;
  /** Of the namespace. */
  readonly labels?: Readonly<Record<string, string>>;
  /** The response to a request for the namespace, instead of it. */
  readonly refusal?: KubeResponse;
}

/** The API of a cluster with one pod, `default/web` on node-1. */
function clusterWith({ pod = {}, namespace = {}, labels = {}, refusal }: Cluster): KubeClient {
  const objects: Readonly<Record<string, object>> = {
    "/api/v1/namespaces/default/pods/web": { metadata: { annotations: pod }, spec: { nodeName: "node-1" } },
    "/api/v1/namespaces/default": { metadata: { annotations: namespace, labels } },
  };
  return {
    async request({ path }) {
      if (refusal !== undefined && path === "/api/v1/namespaces/default") return refusal;
      const found = objects[path];
      return found === undefined ? { status: 404, text: "{}" } : { status: 200, text: JSON.stringify(found) };
    },
    watch: () => {
      throw new Error("not needed");
    },
    close: async () => {},
  };
}

function configWith(ipam: object, more: object = {}): Readonly<Record<string, string>> {
  const own = { type: identity.product, ipam: { type: identity.ipamType, ...ipam }, ...more };
  return { [CONFIG_FILE]: JSON.stringify({ name: "net", cniVersion: "1.0.0", plugins: [own] }) };
}

const KUBERNETES = { kubernetes: { kubeconfig: "/etc/kubeconfig" } };

function explain(words: string, cluster?: Cluster, surroundings: AdminSurroundings = {}): Promise<AdminRun> {
  return runInside(["ipam", "explain", ...words.split(" ")], {
    store,
    env: EMBEDDED,
    files: configWith({}, cluster === undefined ? {} : KUBERNETES),
    ...(cluster && { openKubeClient: async () => clusterWith(cluster) }),
    ...surroundings,
  });
}

describe("ipam explain", () => {
  test("shows the pod's annotation that chose the pool, what it overrides, and why other pools were passed over", async () => {
    await attach("c1", { pod: "web", addressRequests: [{ kind: "automatic", family: 4, pools: ["east"] }] });

    const { code, stdout, stderr } = await explain(
      "default/web",
      { pod: { [`${CNI}ipv4pools`]: '["east"]' }, namespace: { [`${CNI}ipv4pools`]: '["blue"]' } },
      { files: configWith({ ipv4_pools: ["blue"] }, KUBERNETES) },
    );

    expect({ code, stderr }).toEqual({ code: EXIT_OK, stderr: "" });
    const place = `annotation "${CNI}ipv4pools" of pod "default/web"`;
    expect(stdout.replace(/10\.3\.\d+\.\d+/g, "10.3.x.x").replace(/^ {2}Since: .*\n/m, "")).toBe(
      [
        'Workload:   pod "default/web"',
        "Node:       node-1",
        "Network:    net",
        "",
        "IPv4: 10.3.x.x",
        `  Decided by: ${place}: ["east"]`,
        `  Overridden: annotation "${CNI}ipv4pools" of namespace "default" (pod "default/web"): ["blue"]`,
        `              "ipam.ipv4_pools" of network config "${CONFIG_FILE}": ["blue"]`,
        "  Pools:      east      10.3.x.x/16   has 10.3.x.x",
        `              blue      10.1.0.0/16   passed over: it is not listed in ${place}`,
        `              closed    10.2.0.0/16   passed over: it is not listed in ${place}`,
        `              tunnels   10.4.0.0/16   passed over: it is not listed in ${place}`,
        "  Interface:  eth0",
        "  Block:      10.3.x.x/26 of node node-1",
        "  Handle:     net.c1",
        "",
      ].join("\n"),
    );
  });

  test("shows what the node selectors decide for a container without a cluster, by the beginning of its ID or its name", async () => {
    await attach("c0ffee", { workload: "shop" });

    for (const word of ["c0ff", "shop"]) {
      const { code, stdout } = await explain(`${word} -o json`);
      const { families, notes } = JSON.parse(stdout);

      expect({ code, notes }).toEqual({ code: EXIT_OK, notes: [] });
      expect(families).toHaveLength(1);
      expect(families[0]).toMatchObject({
        family: 4,
        decidedBy: { place: "node and namespace selectors of the pools" },
        overridden: [],
        pools: [
          { name: "blue", cidr: "10.1.0.0/16" },
          { name: "closed", passedOver: "it is disabled" },
          { name: "east", passedOver: `its node selector zone == 'east' does not select node "node-1"` },
          { name: "tunnels", passedOver: 'it does not allow the use "Workload"' },
        ],
        addresses: [{ pool: "blue", interface: "eth0", allocation: { blockOf: "node-1", handle: "net.c0ffee" } }],
      });
      expect(families[0].addresses[0].difference).toBeUndefined();
    }
  });

  test("shows for how long released addresses of a pool rest, if the pool says so", async () => {
    await seed(store, poolChange("blue", "10.1.0.0/16", { cooldownSeconds: 600 }));
    await attach("c1", { workload: "shop" });

    const { stdout } = await explain("c1");
    expect(stdout).toMatch(/blue +10\.1\.0\.0\/16 +has 10\.1\.\S+; released addresses rest for 600 s at least/);
    expect(stdout.match(/rest for/g)).toHaveLength(1);
  });

  test("reports the network config as the source, and an address from another pool as a difference", async () => {
    await attach("c1", { workload: "shop" });

    const { stdout } = await explain("c1", undefined, { files: configWith({ ipv4_pools: ["east"] }) });

    expect(stdout).toContain(`Decided by: "ipam.ipv4_pools" of network config "${CONFIG_FILE}": ["east"]`);
    expect(stdout).toMatch(/Difference: 10\.1\.\d+\.\d+ is not from these pools: the runtime requested it, or /);
  });

  test("shows addresses of an annotation, with and without IPAM", async () => {
    await putEndpoint("c1", { pod: "web", node: "node-1", addresses: ["10.1.0.5"] });
    const byIpam = await explain("default/web", {
      pod: { [`${CNI}ipAddrs`]: '["10.1.0.5"]', [`${CNI}ipv4pools`]: '["east"]' },
    });
    const bypassing = await explain(
      "default/web",
      { pod: { [`${CNI}ipAddrsNoIpam`]: '["10.1.0.5"]' } },
      { files: configWith({}, { ...KUBERNETES, feature_control: { ip_addrs_no_ipam: true } }) },
    );

    expect(byIpam.stdout).toContain(`Decided by: annotation "${CNI}ipAddrs" of pod "default/web": ["10.1.0.5"]`);
    expect(byIpam.stdout).toContain(`Overridden: annotation "${CNI}ipv4pools" of pod "default/web": ["east"]`);
    expect(byIpam.stdout).toContain("passed over: it does not contain 10.1.0.5");
    expect(bypassing.stdout).toContain(
      `Decided by: annotation "${CNI}ipAddrsNoIpam" of pod "default/web": ["10.1.0.5"]`,
    );
    expect(bypassing.stdout).toContain("Block:      none: IPAM has not assigned 10.1.0.5 to this workload");
  });

  describe("of addresses that IPAM has not assigned", () => {
    const PLACE = { pod: "web", node: "node-1" } as const;
    const without = (addresses: readonly string[]) =>
      explain(
        "default/web",
        { pod: { [`${CNI}ipAddrsNoIpam`]: JSON.stringify(addresses) } },
        { files: configWith({}, { ...KUBERNETES, feature_control: { ip_addrs_no_ipam: true } }) },
      );
    beforeEach(() => seed(store, poolChange("overlay", "10.7.0.0/16", { vxlanMode: "Always" })));

    test.each([
      [
        "10.1.0.5",
        'announced to other hosts by BGP: pool "blue" has no tunnel (by the settings; "node status" on the node says whether BGP runs)',
      ],
      ["10.7.0.5", 'not announced to other hosts: pool "overlay" is in VXLAN mode; arrange a route to it yourself'],
      ["192.0.2.5", "not announced to other hosts: it is in no pool; arrange a route to it yourself"],
    ])("says whether other hosts learn a route to %s", async (address, routes) => {
      await putEndpoint("c1", { ...PLACE, addresses: [address] });

      expect((await without([address])).stdout).toContain(`  Routes:     ${routes}\n`);
    });

    test("says that one in a block of the node is routed with the block", async () => {
      await attach("other", { addressRequests: [{ kind: "automatic", family: 4, pools: ["overlay"] }] });
      const [block] = (await store.read([{ kind: "prefix", prefix: blocksPrefix(4) }])).answers.flat();
      const cidr = JSON.parse(block?.value ?? "{}").cidr as string;
      const address = cidr.replace(/\d+\/26$/, (end) => `${Number.parseInt(end, 10) + 60}`);
      await putEndpoint("c1", { ...PLACE, addresses: [address] });

      expect((await without([address])).stdout).toContain(`Routes:     in block ${cidr} of this node, which is routed`);
    });

    test("says that nothing is announced if the agent does not speak BGP", async () => {
      const key = resourceKey("nodeagentconfigurations", { name: "default" });
      const value = JSON.stringify({
        apiVersion: API_VERSION,
        kind: "NodeAgentConfiguration",
        metadata: { name: "default" },
        spec: { bgp: "Disabled" },
      });
      await seed(store, { kind: "put", key, value });
      await putEndpoint("c1", { ...PLACE, addresses: ["10.1.0.5"] });

      expect((await without(["10.1.0.5"])).stdout).toContain(
        "Routes:     not announced to other hosts: BGP is disabled in NodeAgentConfiguration; arrange a route to it yourself",
      );
    });

    test("says it of floating IPs", async () => {
      await putEndpoint("c1", { ...PLACE, addresses: ["10.1.0.5"], floating: ["10.1.9.9", "192.0.2.9"] });

      const { stdout } = await explain("default/web", {});
      expect(stdout).toContain("Floating IP: 10.1.9.9\n  Routes:     announced to other hosts by BGP");
      expect(stdout).toContain("Floating IP: 192.0.2.9\n  Routes:     not announced to other hosts: it is in no pool");
      const { floating } = JSON.parse((await explain("default/web -o json", {})).stdout);
      expect(floating).toMatchObject([{ address: "10.1.9.9" }, { address: "192.0.2.9" }]);
    });
  });

  test("shows the list of addresses that a pod names, and why one is refused", async () => {
    await seed(store, listChange("web", ["10.1.0.5", "192.0.2.1"], "tenant == 'a'"));
    await attach("c1", { pod: "web", addressRequests: [{ kind: "given", address: address("10.1.0.5") }] });
    const pod = { [`${CNI}ipAddrsFrom`]: "web", [`${CNI}ipv4pools`]: '["east"]' };

    const { stdout } = await explain("default/web", { pod, labels: { tenant: "a" } });
    expect(stdout).toContain(`Decided by: annotation "${CNI}ipAddrsFrom" of pod "default/web": web\n`);
    expect(stdout).toContain(`Overridden: annotation "${CNI}ipv4pools" of pod "default/web": ["east"]`);
    expect(stdout).toMatch(/blue +10\.1\.0\.0\/16 +has 10\.1\.0\.5\n/);
    expect(stdout).toContain('passed over: no address of IPAddressList "web" is in it');
    expect(stdout).not.toContain("Refused");
    const refused = await explain("default/web", { pod });
    expect(refused.stdout).toContain(
      `Refused:    Cannot use IPAddressList "web": its namespace selector tenant == 'a'`,
    );
    const missing = await explain("default/web", { pod: { [`${CNI}ipAddrsFrom`]: "gone" } });
    expect(missing.stdout).toContain('Refused:    Cannot use IPAddressList "gone"');
  });

  test("names the annotation that asks for a family, although the config assigns another", async () => {
    const { stdout } = await explain("default/web", { namespace: { [`${CNI}ipFamilies`]: '["IPv6"]' } });

    expect(stdout).toContain(`IPv6: no address\n  Family:     annotation "${CNI}ipFamilies" of namespace "default"`);
    expect(stdout).not.toContain("IPv4:");
  });

  test.each([
    ["an unknown pool", { [`${CNI}ipv4pools`]: '["nowhere"]' }, 'Refused:    Cannot use pool "nowhere"'],
    ["a malformed annotation", { [`${CNI}ipv4pools`]: "blue" }, "Refused:    Cannot use annotation"],
    ["a feature that is off", { [`${CNI}ipAddrsNoIpam`]: '["10.1.0.5"]' }, '"feature_control.ip_addrs_no_ipam"'],
    ["an address outside all pools", { [`${CNI}ipAddrs`]: '["10.9.0.5"]' }, "it is not in an enabled pool"],
  ])("says why a pod gets no address: %s", async (_, pod, expected) => {
    const { code, stdout } = await explain("default/web", { pod });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain(expected);
  });

  test("shows that an address is in a block of another node", async () => {
    await seed(store, poolChange("tiny", "10.5.0.0/30", { blockSize: 30 }));
    const addressRequests: AssignRequest["addressRequests"] = [{ kind: "automatic", family: 4, pools: ["tiny"] }];
    await attach("first", { node: "node-2", addressRequests });
    await attach("second", { addressRequests });

    const { stdout } = await explain("second", undefined, { files: configWith({ ipv4_pools: ["tiny"] }) });

    expect(stdout).toContain("Block:      10.5.0.0/30 of node node-2, borrowed by node node-1");
  });

  test("notes that the role does not allow to read the namespace, and goes on without its annotations", async () => {
    await attach("c1", { pod: "web" });
    const status = { kind: "Status", reason: "Forbidden", message: 'namespaces "default" is forbidden' };
    const forbidden = { status: 403, text: JSON.stringify(status) };
    const { code, stdout } = await explain("default/web --output=json", { refusal: forbidden });

    expect([code, JSON.parse(stdout).notes]).toEqual([
      EXIT_OK,
      [expect.stringMatching(/annotations of the namespace have no effect, .*permission to get namespaces.*\["get"\]/)],
    ]);

    const ofProxy = await explain("default/web", { refusal: { status: 403, text: "<html>Forbidden</html>" } });
    expect([ofProxy.code, ofProxy.stderr]).toEqual([EXIT_FAILED, expect.stringContaining("403 Forbidden")]);
  });

  test("says whether the namespace selector of a pool selects the pod's namespace", async () => {
    await seed(store, poolChange("blue", "10.1.0.0/16", { namespaceSelector: "tenant == 'a'" }));
    await attach("c1", { pod: "web", addressRequests: [{ kind: "automatic", family: 4, pools: ["blue"] }] });

    const selected = await explain("default/web", { labels: { tenant: "a" } });
    expect(selected.stdout).toContain("Decided by: node and namespace selectors of the pools");
    expect(selected.stdout).toMatch(/blue +10\.1\.0\.0\/16 +has 10\.1\./);
    const other = await explain("default/web", { labels: { tenant: "b" } });
    const why = `its namespace selector tenant == 'a' does not select namespace "default"`;
    const refused = 'Cannot assign an IPv4 address: no enabled IPv4 pool of node "node-1" serves namespace "default"';
    expect(other.stdout).toContain(`Refused:    ${refused}: pool "blue": ${why}`);
    await seed(
      store,
      poolChange("open", "10.8.0.0/16"),
      poolChange("a2", "10.9.0.0/16", { namespaceSelector: "tenant == 'a'" }),
    );
    expect((await explain("default/web", { labels: { tenant: "b" } })).stdout).toContain(`passed over: ${why}`);
  });

  test("finds a pod without its namespace", async () => {
    await attach("c1", { pod: "web" });

    const { code, stdout } = await explain("web", {});

    expect({ code, stdout }).toEqual({ code: EXIT_OK, stdout: (await explain("default/web", {})).stdout });
  });

  test("says what it does not know", async () => {
    await attach("c1", { pod: "web" });

    const { code, stdout, stderr } = await explain("default/web", undefined, { files: {} });

    expect(code).toBe(EXIT_OK);
    expect(stdout).toContain("Decided by: node and namespace selectors of the pools");
    expect(stderr).toContain("No access to the Kubernetes API is configured: annotations are not taken into account");
    expect(stderr).toContain("There is no network config on this host");
  });

  test("fails for a workload that does not exist, a bad operand, and another IPAM plugin", async () => {
    const missing = await explain("default/other", {});
    const bad = await explain("a/b/c");
    const other = await explain(
      "default/web",
      {},
      { files: configWith({ type: "host-local", subnet: "10.9.0.0/16" }) },
    );

    expect(missing.code).toBe(EXIT_FAILED);
    expect(missing.stderr).toContain('Cannot explain pod "default/other": it has no endpoint in the datastore');
    expect(bad.code).toBe(EXIT_USAGE);
    expect(other.stderr).toContain('its addresses come from IPAM plugin "host-local", which has no pools');
  });
});
