import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminSurroundings, runInside, WELL } from "../../../test/support/admin-context.ts";
import { nodeChange, poolChange, seed } from "../../../test/support/ipam.ts";
import type { Change } from "../../datastore/datastore.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { PluginError } from "../../errors.ts";
import { API_VERSION, identity } from "../../identity.ts";
import { NETWORK_ANNOTATION } from "../../model/endpoint-labels.ts";
import { resourceKey } from "../../model/keys.ts";
import type { HostFacts } from "../host/facts.ts";
import { EXIT_FAILED, EXIT_OK } from "../main/command.ts";

const { product, ipamType, labelPrefix, nodeAgent, adminTool } = identity;
const CONFIG_FILE = "/etc/cni/net.d/10-pods.conf";

const EXAMPLE = `/usr/share/${product}/10-${product}-embedded.conflist`;

function config(more: object): string {
  return JSON.stringify({ name: "pods", cniVersion: "1.0.0", type: product, ipam: { type: ipamType }, ...more });
}

const DATASTORE = { datastore_type: "embedded", datastore_path: import.meta.path };
const EMBEDDED = config(DATASTORE);

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Change {
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata: { name, ...more }, spec });
  return { kind: "put", key: resourceKey(plural, { name, ...more }), value } as Change;
}

function container(workload: string, node: string, address: string, profile = "pods"): Change {
  const spec = {
    ...{ orchestrator: "cni", node, workload, containerID: `${workload}1`, endpoint: "eth0" },
    ...{ ipNetworks: [`${address}/32`], interfaceName: `vend${workload}`, profiles: [profile] },
  };
  const labels = { role: workload, [`${labelPrefix}namespace`]: "default" };
  return put("workloadendpoints", "WorkloadEndpoint", `${node}-cni-${workload}1-eth0`, spec, {
    namespace: "default",
    labels,
  });
}

function policy(name: string, selector: string): Change {
  return put("networkpolicies", "NetworkPolicy", name, { selector, types: ["Ingress"] }, { namespace: "default" });
}

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await seed(store, poolChange("blue", "10.0.0.0/24"), nodeChange("here"), put("profiles", "Profile", "pods", {}));
});

const LINK = { reversePath: 1, servesLoopback: false, allowsSources: false, allowedFamilies: [], families: [] };
const RUNNING: HostFacts = { ...WELL, agent: "running", hasPolicyTable: true };

function status(more: AdminSurroundings = {}, ...args: readonly string[]) {
  const files = { [CONFIG_FILE]: EMBEDDED };
  return runInside(["status", ...args], { store, files, hostName: "here", hostFacts: RUNNING, ...more });
}

test("status reports an unreadable network config once", async () => {
  const unreadable = "/etc/cni/net.d/05-other.conf";
  const files = { [unreadable]: "", [CONFIG_FILE]: EMBEDDED };
  const readFile = async (path: string) => {
    if (path === unreadable) throw Object.assign(new Error("EACCES"), { code: "EACCES" });
    return path === CONFIG_FILE ? EMBEDDED : "";
  };

  const { stdout, stderr } = await status({ files, readFile });

  expect(`${stdout}${stderr}`.match(/Cannot (?:read|use) .*conf/g)).toHaveLength(1);
});

describe("status of a host without Kubernetes", () => {
  test("shows agent, datastore, pools, containers and policies, and that all is well", async () => {
    await seed(store, policy("db", "role == 'db'"), policy("typo", "rol == 'db'"));
    const { code, stdout } = await status();

    expect(stdout).toContain("Host:        here\n");
    expect(stdout).toContain(`Network:     pods (${CONFIG_FILE})\n`);
    expect(stdout).toContain("Node agent:  running\n");
    expect(stdout).toContain(`Datastore:   embedded (${import.meta.path})\n`);
    expect(stdout).toMatch(/^blue +10\.0\.0\.0\/24 +256 +0 +256 +enabled$/m);
    expect(stdout).toMatch(/^networkpolicy\/default\/typo +default +nothing on this host$/m);
    expect(stdout).toEndWith("\nEverything is well.\n");
    expect(code).toBe(EXIT_OK);
  });

  test("shows the containers of this host with the policies that select them, and problems of address records", async () => {
    await seed(store, container("db", "here", "10.0.0.1"), container("far", "there", "10.0.0.2"));
    await seed(store, policy("db", "role == 'db'"));
    const { code, stdout } = await status();

    expect(stdout).toMatch(/^db +pods +10\.0\.0\.1 +venddb +1$/m);
    expect(stdout).not.toMatch(/\bfar\b/);
    expect(stdout).toMatch(/^networkpolicy\/default\/db +default +db$/m);
    // Their addresses are not allocated.
    expect(stdout).toContain("failed: addresses: 2 problems of address records, for example: ");
    expect(stdout).toContain(`  what to do: ${adminTool} ipam check\n`);
    expect(code).toBe(EXIT_FAILED);
  });

  test("names a container without an interface at once, and when its address is released", async () => {
    const attached = (id: string, address: string) =>
      put(
        "workloadendpoints",
        "WorkloadEndpoint",
        `here-cni-${id}-eth0`,
        {
          ...{ orchestrator: "cni", node: "here", workload: "web", containerID: id, endpoint: "eth0" },
          ...{ ipNetworks: [`${address}/32`], interfaceName: `vend${id}`, profiles: ["pods"] },
        },
        { namespace: "default", annotations: { [NETWORK_ANNOTATION]: "pods" } },
      );
    await seed(store, attached("old", "10.0.0.1"), attached("new", "10.0.0.2"));
    const hostLinks = { marks: new Set(["pods/new/eth0"]) };
    const { stdout } = await status({ hostLinks });
    const stopped = await status({ hostLinks, hostFacts: { ...RUNNING, agent: "stopped" } });

    expect(stdout).toMatch(/^web +pods +10\.0\.0\.1 +gone +0$/m);
    expect(stdout).toMatch(/^web +pods +10\.0\.0\.2 +vendnew +0$/m);
    expect(stdout).toContain(
      "warning: containers: web is gone: no interface on this host; its address 10.0.0.1 is released within 10 minutes\n",
    );
    expect(stopped.stdout).toContain(`since the node agent does not run\n  what to do: ${adminTool} ipam gc\n`);
    expect((await status()).stdout).toContain("web, web are gone");
    expect((await status({ hostLinks: { isHostNamespace: false } })).stdout).not.toContain("gone");
  });

  test("fails if containers run here that the datastore does not know", async () => {
    const link = { ...LINK, name: "vendlost", alias: "pods/lost1/eth0" };
    const { code, stdout } = await status({ hostFacts: { ...RUNNING, podLinks: [link] } });

    expect(stdout).toContain(
      "failed: containers: 1 container runs here that the datastore does not know (lost1): was it lost?",
    );
    expect(code).toBe(EXIT_FAILED);
  });

  test("shows the host endpoints of this host, and which of them is about an interface that it does not have", async () => {
    const hostEndpoint = (name: string, spec: object) => put("hostendpoints", "HostEndpoint", name, spec);
    await seed(
      store,
      hostEndpoint("all", { node: "here", interfaceName: "*", profiles: ["a", "b"] }),
      hostEndpoint("expected", { node: "here", expectedIPs: ["192.0.2.2"] }),
      hostEndpoint("typo", { node: "here", interfaceName: "uplnk", profiles: ["a"] }),
      hostEndpoint("far", { node: "there", interfaceName: "eth9", profiles: ["a"] }),
    );
    const { stdout } = await status({ linkNames: ["lo", "uplink"] });

    expect(stdout).toMatch(/^HOST ENDPOINT +INTERFACE +PROFILES +POLICIES$/m);
    expect(stdout).toMatch(/^all +\* +a,b +0$/m);
    expect(stdout).toMatch(/^expected +192\.0\.2\.2 +none +0$/m);
    expect(stdout).toMatch(/^typo +uplnk +a +0$/m);
    expect(stdout).not.toMatch(/^far/m);
    expect(stdout).toContain('warning: host endpoint typo: node here has no interface "uplnk" (hostendpoint/typo)');
    expect(stdout.match(/has no interface/g)).toHaveLength(1);
    const { hostEndpoints } = JSON.parse((await status({}, "-o", "json")).stdout);
    expect(hostEndpoints[0]).toEqual({ name: "all", interface: "*", profiles: ["a", "b"], policies: [] });
  });

  test.each(["preDNAT", "doNotTrack"])("a policy with %s concerns host endpoints alone", async (field) => {
    const spec = { selector: "all()", types: ["Ingress"], applyOnForward: true, [field]: true };
    await seed(store, container("db", "here", "10.0.0.1"));
    await seed(store, put("hostendpoints", "HostEndpoint", "uplink", { node: "here", interfaceName: "eth0" }));
    await seed(store, put("globalnetworkpolicies", "GlobalNetworkPolicy", "early", spec));
    const { stdout } = await status();

    expect(stdout).toMatch(/^db +pods +10\.0\.0\.1 +venddb +0$/m);
    expect(stdout).toMatch(/^globalnetworkpolicy\/early +default +host endpoint uplink$/m);
  });

  test.each<[string, AdminSurroundings, readonly Change[], readonly string[]]>([
    [
      "a policy that nothing enforces",
      { hostFacts: { ...WELL, agent: "stopped" } },
      [container("db", "here", "10.0.0.1"), policy("db", "role == 'db'")],
      [
        "failed: node agent: not running",
        "failed: network policy: policies select 1 container of this host (db), and nothing enforces them",
        `  what to do: systemctl enable --now ${nodeAgent}`,
      ],
    ],
    [
      "a datastore that cannot be read",
      { openDatastore: () => Promise.reject(new PluginError("datastore-unavailable", "Cannot use etcd")) },
      [],
      ["failed: datastore: Cannot use etcd"],
    ],
    [
      "a network config that cannot be used",
      { files: { [CONFIG_FILE]: config({ datastore_type: "nonsense" }) } },
      [],
      [`failed: network: Cannot use ${CONFIG_FILE}:1:`, "Datastore:   unknown\n"],
    ],
    [
      "a network config that is not JSON",
      { files: { [CONFIG_FILE]: '{\n  "name": "pods"\n  "type": "x"\n}' }, env: { KUBECONFIG: "/k" } },
      [],
      [`failed: network: Cannot use ${CONFIG_FILE}:3:3: not valid JSON`],
    ],
    ["a host without a network", { files: {} }, [], ['no network config in /etc/cni/net.d runs the plugin "']],
    [
      "a host without a network, where an example is installed",
      { files: { [EXAMPLE]: EMBEDDED } },
      [],
      [`  what to do: cp ${EXAMPLE} /etc/cni/net.d/, then run: `],
    ],
    [
      "an embedded datastore that is missing",
      { files: { [CONFIG_FILE]: config({ datastore_type: "embedded", datastore_path: "/no/such.sqlite" }) } },
      [],
      ["Datastore:   embedded (/no/such.sqlite)\n", "the file does not exist"],
    ],
    [
      "a disabled pool",
      {},
      [poolChange("blue", "10.0.0.0/24", { disabled: true })],
      ["failed: IP pools: there is no enabled IP pool", `  what to do: ${adminTool} patch ippool blue -p `],
    ],
    [
      "a profile that does not exist",
      {},
      [
        container("db", "here", "10.0.0.1", "gone"),
        container("web", "here", "10.0.0.3", "gone"),
        container("good", "here", "10.0.0.4"),
        container("far", "there", "10.0.0.2", "gone"),
        policy("db", "role == 'other'"),
      ],
      ['failed: profiles: profile "gone" does not exist, so db, web have only what policies allow\n'],
    ],
    [
      "pools that select other nodes",
      {},
      [poolChange("blue", "10.0.0.0/24", { nodeSelector: "has(vmm)" })],
      [
        'failed: IP pools: Cannot assign an IPv4 address: no enabled IPv4 pool selects node "here"',
        "pools: blue 10.0.0.0/24 (of nodes has(vmm)); label node",
      ],
    ],
    [
      "a pool that the network config names and nobody has created",
      { files: { [CONFIG_FILE]: config({ ...DATASTORE, ipam: { type: ipamType, ipv4_pools: ["red"] } }) } },
      [],
      ['failed: IP pools: Cannot use pool "red": no such pool'],
    ],
    [
      "an unreadable policy",
      {},
      [
        {
          kind: "put",
          key: resourceKey("networkpolicies", { namespace: "default", name: "bad" }),
          value: "{",
        } as Change,
      ],
      ["failed: datastore: ", "networkpolicy/default/bad --force"],
    ],
  ])("reports %s", async (_, more, changes, lines) => {
    await seed(store, ...changes);
    const { code, stdout } = await status(more);

    for (const line of lines) expect(stdout).toContain(line);
    expect(code).toBe(EXIT_FAILED);
  });

  test("warns of what the agent cannot carry out, and of old data", async () => {
    const routingFacts = {
      ...{ isAgentRunning: true, state: undefined, bird: undefined, kernelRoutes: [], refusedClaims: [] },
      ...{ routingProblems: [], policyProblems: ['policy "x" denies'] },
      datastore: { state: "stale", knownAt: "2026-01-02T03:04:05Z", failure: "no route" } as const,
    };
    const { code, stdout } = await status({ routingFacts });

    expect(stdout).toContain(`warning: ${nodeAgent}: policy "x" denies\n  what to do: ${adminTool} node status\n`);
    expect(stdout).toContain("what it knows of the datastore is old: no route");
    expect(code).toBe(EXIT_OK);
  });

  test("shows the policies of a container also on a terminal of 40 columns", async () => {
    await seed(store, container("db", "here", "10.0.0.1"), policy("db", "role == 'db'"));
    const { stdout } = await status({ terminalWidth: 40 });

    expect(stdout).toMatch(/^CONTAINER .*POLICIES …$/m);
    expect(stdout).toMatch(/^POOL .*USED +FREE/m);
  });

  test("warns of a damaged file beside the network config", async () => {
    const damaged = "/etc/cni/net.d/20-back.conflist";
    const { code, stdout } = await status({ files: { [CONFIG_FILE]: EMBEDDED, [damaged]: '{ "name": }' } });

    expect(stdout).toContain(`warning: network: container runtimes skip a file: Cannot use ${damaged}:1:11: `);
    expect(code).toBe(EXIT_OK);
  });

  test("prints JSON and YAML for scripts", async () => {
    await seed(store, container("db", "here", "10.0.0.1"));
    const { stdout } = await status({}, "-o", "json");

    expect(JSON.parse(stdout)).toMatchObject({
      ...{ ok: false, scope: "host", node: "here", agent: { state: "running" } },
      network: { name: "pods", file: CONFIG_FILE },
      datastore: { kind: "embedded", place: import.meta.path },
      pools: [{ name: "blue", size: "256" }],
      containers: [{ name: "db", addresses: ["10.0.0.1"], policies: [] }],
      findings: [{ state: "failed", subject: "addresses" }],
    });
    expect(Bun.YAML.parse((await status({}, "-o", "yaml")).stdout)).toEqual(JSON.parse(stdout));
  });
});

describe("status", () => {
  const KUBERNETES = config({ datastore_type: "kubernetes", kubernetes: { kubeconfig: "/k" } });
  const NO_FILES: Readonly<Record<string, string>> = {};

  test.each([
    ["a network without Kubernetes", { [CONFIG_FILE]: EMBEDDED }, {}, [], "host"],
    ["one beside a kubeconfig of other tools", { [CONFIG_FILE]: EMBEDDED, "/home/.kube/config": "" }, {}, [], "host"],
    ["one, and KUBECONFIG", { [CONFIG_FILE]: EMBEDDED }, { KUBECONFIG: "/k" }, [], "host"],
    ["one, and --kubeconfig", { [CONFIG_FILE]: EMBEDDED }, {}, ["--kubeconfig", "/k"], "cluster"],
    ["a network with Kubernetes", { [CONFIG_FILE]: KUBERNETES }, {}, [], "cluster"],
    ["no network and a kubeconfig", { "/home/.kube/config": "" }, {}, [], "cluster"],
    ["no network and KUBECONFIG", NO_FILES, { KUBECONFIG: "/k" }, [], "cluster"],
    ["no network, in a pod", NO_FILES, { KUBERNETES_SERVICE_HOST: "10.96.0.1" }, [], "cluster"],
    ["no network and no kubeconfig", NO_FILES, {}, [], "host"],
    ["--datastore-type kubernetes", NO_FILES, {}, ["--datastore-type", "kubernetes"], "cluster"],
  ] as const)("with %s is about the host or the cluster", async (_, files, env, args, expected) => {
    const { stdout, stderr } = await status({ files, env: { HOME: "/home", ...env } }, ...args);

    expect(stderr.includes("there is no cluster") ? "cluster" : stdout.startsWith("Host:") ? "host" : stderr).toBe(
      expected,
    );
  });
});
