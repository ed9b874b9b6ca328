import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { NETWORK_ANNOTATION } from "../../../model/endpoint-labels.ts";
import { resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
const LABEL = identity.labelPrefix;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("profiles", "Profile", "kns.default", {
    ingress: [{ action: "Allow" }],
    egress: [{ action: "Allow" }],
    labelsToApply: { [`pcns.${LABEL}name`]: "default" },
  });
  await put("nodes", "Node", "node-1", { bgp: { ipv4Address: "192.0.2.1/24" } });
  await pod("client", ["10.0.0.1", "fd00::1"], { app: "client" });
  await pod("web", ["10.0.0.2", "fd00::2"], { app: "web" });
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const metadata = { name, ...more };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function pod(
  name: string,
  addresses: readonly string[],
  labels: Readonly<Record<string, string>>,
  namespace = "default",
): Promise<void> {
  const all = { ...labels, [`${LABEL}namespace`]: namespace, [`${LABEL}orchestrator`]: "k8s" };
  return put(
    "workloadendpoints",
    "WorkloadEndpoint",
    `node--1-k8s-${name}-eth0`,
    {
      ...{ orchestrator: "k8s", node: "node-1", pod: name, endpoint: "eth0", profiles: ["kns.default"] },
      ...{ interfaceName: `x${name}`, containerID: `${name}0` },
      ipNetworks: addresses.map((text) => `${text}/${text.includes(":") ? 128 : 32}`),
    },
    { namespace, labels: all },
  );
}

/** As an ADD of podman records it. */
function container(
  name: string,
  endpoint: string,
  network: string,
  address: string,
  containerID = `${name}0`,
): Promise<void> {
  return put(
    "workloadendpoints",
    "WorkloadEndpoint",
    `node--1-cni-${containerID}-${endpoint}`,
    {
      ...{ orchestrator: "cni", node: "node-1", workload: name, endpoint, containerID, profiles: ["pods"] },
      ...{ interfaceName: `x${name}${endpoint}`, ipNetworks: [`${address}/32`] },
    },
    {
      namespace: "default",
      labels: { net: network, [`${LABEL}namespace`]: "default", [`${LABEL}orchestrator`]: "cni" },
      annotations: { [NETWORK_ANNOTATION]: network },
    },
  );
}

function policy(name: string, spec: object): Promise<void> {
  return put("networkpolicies", "NetworkPolicy", name, spec, { namespace: "default" });
}

function explain(words: string, terminalWidth?: number): Promise<AdminRun> {
  return runInside(["policy", "explain", ...words.split(" ")], { store, env: EMBEDDED, terminalWidth });
}

/** As podman has it: the name is of the container. */
function namesake(name: string, id: string, address: string): Promise<void> {
  return put(
    "workloadendpoints",
    "WorkloadEndpoint",
    `here-cni-${id}-eth0`,
    {
      ...{ orchestrator: "cni", node: "here", workload: name, containerID: id, endpoint: "eth0" },
      ...{ interfaceName: `x${id}`, profiles: ["kns.default"], ipNetworks: [`${address}/32`] },
    },
    { namespace: "default", annotations: { [NETWORK_ANNOTATION]: "pods" } },
  );
}

const WEB = "--from default/client --to default/web --ip-version 4 --port 80";

describe("policy explain", () => {
  test.each([80, 40])("fits a terminal with %i columns, and leaves nothing out", async (width) => {
    const web = { selector: "app == 'web'", types: ["Ingress"], order: 10 };
    const ingress = [{ action: "Allow", protocol: "TCP", source: { selector: "app == 'somebody-else'" } }];
    await policy("everything-that-the-web-tier-may-receive", { ...web, ingress });
    await policy("second", web);
    const whole = (await explain(WEB)).stdout;

    const { stdout } = await explain(WEB, width);

    expect(Math.max(...stdout.split("\n").map((line) => line.length))).toBeLessThanOrEqual(width);
    expect(stdout.replaceAll(/\s/g, "")).toBe(whole.replaceAll(/\s/g, ""));
    expect(stdout).toContain(
      width === 80
        ? "1. NetworkPolicy default/everything-that-the-web-tier-may-receive\n"
        : "1. NetworkPolicy\n              default/everything-that-th\n",
    );
  });

  test("takes a name for the container that runs, not for one before it whose interface is gone", async () => {
    await namesake("page", "old", "10.0.0.8");
    await namesake("page", "new", "10.0.0.9");
    const run = (...marks: readonly string[]) =>
      runInside("policy explain --from 10.0.0.1 --to page --port 80".split(" "), {
        ...{ store, env: EMBEDDED, hostName: "here", hostLinks: { marks: new Set(marks) } },
      });
    const found = await run("pods/new/eth0");

    expect([found.code, found.stderr]).toEqual([EXIT_OK, ""]);
    expect(found.stdout).toContain("10.0.0.9");
    expect(found.stdout).not.toContain("10.0.0.8");
    expect((await run("pods/new/eth0", "pods/old/eth0")).code).toBe(EXIT_USAGE);
    expect((await run()).code).toBe(EXIT_USAGE);
  });

  test("without policies the profiles of both sides decide", async () => {
    const { code, stdout, stderr } = await explain(WEB);

    expect({ code, stderr }).toEqual({ code: EXIT_OK, stderr: "" });
    expect(stdout).toBe(
      [
        "Packet:     IPv4 TCP to port 80",
        "From:       default/client (10.0.0.1, node node-1, interface xclient)",
        "To:         default/web (10.0.0.2, node node-1, interface xweb)",
        "Verdict:    allowed",
        "",
        "Egress of default/client: allowed",
        '  Because:    no egress policy applies, so the profiles decide: Profile "kns.default", egress rule 1 (spec.egress[0]): allow everything',
        "",
        "Ingress of default/web: allowed",
        '  Because:    no ingress policy applies, so the profiles decide: Profile "kns.default", ingress rule 1 (spec.ingress[0]): allow everything',
        "",
      ].join("\n"),
    );
  });

  test("without any policy the verdict is what happens: also what no profile allows passes, and the note says why", async () => {
    await put("profiles", "Profile", "kns.default", { egress: [{ action: "Allow" }] });
    const note = "there is no policy";

    const { stdout } = await explain(WEB);
    expect(stdout).toContain("Verdict:    allowed\n");
    expect(stdout).toContain(`Note:       ${note}`);
    expect(stdout).toContain("Ingress of default/web: allowed\n");
    expect(stdout).toContain(
      "nothing is enforced; once there is a policy it is denied: no ingress policy applies, and",
    );
    expect(JSON.parse((await explain(`${WEB} -o json`)).stdout).packets[0]).toMatchObject({
      verdict: "allow",
      note: expect.stringContaining(note),
    });

    await policy("other", { selector: "app == 'other'" });
    const enforced = (await explain(WEB)).stdout;
    expect(enforced).toContain("Verdict:    denied\n");
    expect(enforced).not.toContain(note);
  });

  test("without any policy, a host whose network config has a policy type enforces profiles", async () => {
    await put("profiles", "Profile", "kns.default", { egress: [{ action: "Allow" }] });
    const plugin = { type: identity.product, policy: { type: "k8s" }, ipam: { type: identity.ipamType } };
    const list = { name: "pods", cniVersion: "1.0.0", plugins: [plugin] };
    const files = { "/etc/cni/net.d/10.conflist": JSON.stringify(list) };

    const run = await runInside(["policy", "explain", ...WEB.split(" ")], { store, env: EMBEDDED, files });

    expect(run.stdout).toContain("Verdict:    denied\n");
  });

  test("a network config that cannot be used is a note, not a failure", async () => {
    await put("profiles", "Profile", "kns.default", { egress: [{ action: "Allow" }] });
    const list = { name: "pods", cniVersion: "1.0.0", plugins: [{ type: identity.product, ipam: 7 }] };
    const files = { "/etc/cni/net.d/10.conflist": JSON.stringify(list) };

    const run = await runInside(["policy", "explain", ...WEB.split(" ")], { store, env: EMBEDDED, files });

    expect(run.code).toBe(EXIT_OK);
    expect(run.stdout).toContain("Verdict:    allowed\n");
    expect(run.stdout).toContain("Cannot use /etc/cni/net.d/10.conflist:1:");
  });

  test("names the policy that isolates the destination, and that no rule of it matches", async () => {
    await policy("deny-all", { types: ["Ingress"] });

    const { stdout } = await explain(WEB);

    expect(stdout).toContain("Verdict:    denied\n");
    expect(stdout).toContain("Egress of default/client: allowed\n");
    expect(stdout).toContain(
      'Because:    no rule of the policy that applies in tier "default" matches, so the tier denies it',
    );
    expect(stdout).toContain("Policies:   1.   NetworkPolicy default/deny-all   tier default   no rule matches\n");
  });

  test("names the rule that allows it, and the policies that come before and after", async () => {
    await policy("a-first", { order: 1, selector: "app == 'web'", ingress: [{ action: "Allow", protocol: "UDP" }] });
    await policy("b-second", {
      order: 2,
      selector: "app == 'web'",
      ingress: [
        { action: "Deny", source: { nets: ["192.0.2.0/24"] } },
        {
          action: "Allow",
          protocol: "TCP",
          source: { selector: "app == 'client'" },
          destination: { ports: [80, "90:99"] },
        },
      ],
    });
    await policy("c-third", { order: 3, selector: "app == 'web'" });
    await policy("of-others", { order: 1, selector: "app == 'db'" });

    const { stdout } = await explain(WEB);

    expect(stdout).toContain("Verdict:    allowed\n");
    expect(stdout).toContain(
      `Because:    NetworkPolicy "default/b-second", ingress rule 2 (spec.ingress[1]): allow TCP from endpoints with app == 'client' in namespace "default" to port 80 or 90-99\n`,
    );
    expect(stdout).toContain(
      [
        "  Policies:   1.   NetworkPolicy default/a-first    tier default, order 1   no rule matches",
        "              2.   NetworkPolicy default/b-second   tier default, order 2   decides",
        "              3.   NetworkPolicy default/c-third    tier default, order 3   not reached",
      ].join("\n"),
    );
  });

  test("is JSON for scripts, with one packet for each IP version that both have", async () => {
    await policy("deny-all", { types: ["Ingress", "Egress"] });

    const { packets } = JSON.parse((await explain("--from default/client --to default/web --port 80 -o json")).stdout);

    expect(packets).toHaveLength(2);
    expect(packets[1]).toMatchObject({
      verdict: "deny",
      from: { address: "fd00::1", workload: "default/client", node: "node-1" },
      packet: { ipVersion: 6, protocol: 6, destinationPort: 80 },
      sides: [
        {
          direction: "egress",
          verdict: "deny",
          decidedBy: { kind: "Tier", name: "default" },
          policies: [{ kind: "NetworkPolicy", name: "deny-all", namespace: "default", outcome: "no rule matches" }],
        },
        { direction: "ingress", verdict: "deny" },
      ],
    });
  });

  test("shows tiers in their order, and the rule that passes to the next one", async () => {
    await put("tiers", "Tier", "first", { order: 10 });
    await put("globalnetworkpolicies", "GlobalNetworkPolicy", "first.pass", {
      tier: "first",
      order: 500,
      selector: "app == 'web'",
      ingress: [{ action: "Pass", protocol: "TCP" }],
    });
    await policy("allow", { order: 1, selector: "app == 'web'", ingress: [{ action: "Allow" }] });

    const { stdout } = await explain(WEB);

    expect(stdout).toContain(
      [
        "  Policies:   1.   GlobalNetworkPolicy first.pass   tier first, order 500   ingress rule 1 (spec.ingress[0]) passes to the next tier",
        "              2.   NetworkPolicy default/allow      tier default, order 1   decides",
      ].join("\n"),
    );
  });

  test("an address outside the network has no policies, and only the workload's side is explained", async () => {
    await policy("deny-all", { types: ["Ingress"] });

    const { stdout } = await explain("--from 198.51.100.7 --to default/web --protocol udp --port 53");

    expect(stdout).toContain("From:       198.51.100.7 (not a workload)\n");
    expect(stdout).toContain("Verdict:    denied\n");
    expect(stdout).not.toContain("Egress of");
  });

  test("a node reaches its own workloads, and a workload its node as the agent's configuration says", async () => {
    await policy("deny-all", { types: ["Ingress"] });

    expect((await explain("--from 192.0.2.1 --to default/web --port 80")).stdout).toContain(
      'Ingress of default/web: allowed\n  Because:    node "node-1" always reaches its own workloads',
    );
    expect((await explain("--from default/web --to 192.0.2.1 --port 80")).stdout).toContain("Verdict:    allowed\n");
    await put("nodeagentconfigurations", "NodeAgentConfiguration", "default", { defaultEndpointToHostAction: "Drop" });
    expect((await explain("--from default/web --to 192.0.2.1 --port 80")).stdout).toContain("Verdict:    denied\n");
  });

  test("ICMP is an echo request of the IP version unless a type is given", async () => {
    const icmp = (type: number) => ({ action: "Allow", protocol: "ICMP", icmp: { type } });
    await policy("ping", { selector: "app == 'web'", ingress: [icmp(8)] });

    const base = "--from default/client --to default/web --protocol icmp";
    expect((await explain(`${base} --ip-version 4`)).stdout).toContain("Verdict:    allowed\n");
    expect((await explain(`${base} --ip-version 6`)).stdout).toContain("IPv6 ICMPv6 type 128 code 0");
    expect((await explain(`${base} --ip-version 4 --icmp-type 13`)).stdout).toContain("Verdict:    denied\n");
  });

  test("a policy that cannot be carried out denies both directions, and says why", async () => {
    await policy("http", { selector: "app == 'web'", ingress: [{ action: "Deny", http: { methods: ["GET"] } }] });

    const { stdout } = await explain("--from default/web --to default/client --ip-version 4 --port 80");

    expect(stdout).toContain("Egress of default/web: denied\n");
    expect(stdout).toContain(
      'decides; denies everything because a rule has "http" that is not an ingress rule for TCP with action Allow\n',
    );
  });

  test("an unreadable policy denies everything in its namespace, and is reported", async () => {
    const key = resourceKey("networkpolicies", { namespace: "default", name: "broken" });
    await seed(store, { kind: "put", key, value: "{" });

    const { code, stdout, stderr } = await explain(WEB);

    expect(code).toBe(EXIT_FAILED);
    expect(stdout).toContain("Verdict:    denied\n");
    expect(stdout).toContain('NetworkPolicy "default/broken", egress rule 1 (spec.egress[0]): deny everything');
    expect(stderr).toContain("broken");
  });

  test("a pod is found without its namespace, unless two namespaces have one of this name", async () => {
    const words = "--from client --to web --ip-version 4 --port 80";
    expect(await explain(words)).toEqual(await explain(WEB));
    await pod("web", ["10.0.0.3"], {}, "prod");

    const { code, stderr } = await explain(words);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain('"web" names several workloads; give one of default/web, prod/web');
    for (const namespace of ["a", "b", "c"]) await pod("web", ["10.0.0.3"], {}, namespace);
    expect((await explain(words)).stderr).toMatch(/give one of \S+, \S+, \S+ and 2 more/);
  });

  test("says that a profile of the endpoint does not exist", async () => {
    await container("single", "eth0", "pods", "10.1.0.6");
    await policy("other", { selector: "app == 'other'" });

    expect((await explain("--from 192.0.2.7 --to single --port 80")).stdout).toContain(
      'no ingress policy applies, and no profile of the endpoint allows it ("pods"): profile "pods" does not exist\n',
    );
  });

  describe("of a container in two networks", () => {
    beforeEach(async () => {
      await container("two", "eth0", "pods", "10.1.0.1");
      await container("two", "eth1", "back", "10.1.0.5");
      await container("single", "eth0", "back", "10.1.0.6");
      await put("profiles", "Profile", "pods", { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
    });

    const lines = (stdout: string, title: string) => stdout.match(new RegExp(`^${title}: .*`, "gm"));

    test("a client of one of them uses the address of that network, and the note names the other", async () => {
      const { code, stdout } = await explain("--from single --to two --port 80");

      expect(code).toBe(EXIT_OK);
      expect(lines(stdout, "To")).toEqual([
        "To:         two (10.1.0.5, network back, node node-1, interface xtwoeth1)",
      ]);
      expect(lines(stdout, "From")).toEqual(["From:       single (10.1.0.6, node node-1, interface xsingleeth0)"]);
      expect(lines(stdout, "Note")?.[0]).toContain('"two" also has 10.1.0.1 (pods): give an address to ask about it');
    });

    test("one who is in none of them may use each address", async () => {
      const { stdout } = await explain("--from 192.0.2.7 --to two --port 80");

      expect(lines(stdout, "To")).toEqual([
        "To:         two (10.1.0.1, network pods, node node-1, interface xtwoeth0)",
        "To:         two (10.1.0.5, network back, node node-1, interface xtwoeth1)",
      ]);
      expect(stdout).not.toContain("Note:");
    });

    test("its routes choose the address that it sends from: each is shown with its own verdict", async () => {
      await policy("back", { selector: "net == 'back'", types: ["Egress"], egress: [{ action: "Deny" }] });
      const { stdout } = await explain("--from two --to single --port 80 -o json");

      expect(JSON.parse(stdout).packets).toMatchObject([
        { verdict: "allow", from: { address: "10.1.0.1", network: "pods", workload: "two" } },
        { verdict: "deny", from: { address: "10.1.0.5", network: "back", workload: "two" } },
      ]);
      expect(JSON.parse(stdout).packets[0].note).toContain(
        'the routes of "two" choose its source address: 10.1.0.1 (pods), 10.1.0.5 (back)',
      );
    });

    test("one of its addresses is only that address", async () => {
      const { stdout } = await explain("--from single --to 10.1.0.1 --port 80");

      expect(lines(stdout, "To")).toEqual(["To:         two (10.1.0.1, node node-1, interface xtwoeth0)"]);
    });

    test("of two containers with the name, an address says which", async () => {
      await container("two", "eth0", "pods", "10.1.0.9", "another");
      const { code, stderr } = await explain("--from single --to two --port 80");

      expect(code).toBe(EXIT_USAGE);
      expect(stderr).toContain("give one of them: 10.1.0.9, 10.1.0.1, 10.1.0.5");
    });
  });

  test.each([
    ["--from default/clint --to default/web --port 80", 'did you mean "default/client"?'],
    ["--from clint --to default/web --port 80", 'did you mean "client"?'],
    ["--from default/client --to nowhere/else --port 80", "use NAMESPACE/POD"],
  ])("an unknown workload is reported with the nearest one: %s", async (words, expected) => {
    const { code, stderr } = await explain(words);

    expect(code).toBe(EXIT_FAILED);
    expect(stderr).toContain(expected);
  });

  test.each([
    ["--to default/web --port 80", '"--from" is missing'],
    ["--from default/client --to default/web", '"--port" is missing: TCP needs a destination port'],
    ["--from default/client --to default/web --port 70000", '"--port" is "70000": must be a number from 0 to 65535'],
    ["--from default/client --to default/web --protocol tpc --port 1", '"--protocol" is "tpc"'],
    ["--from default/client --to default/web --protocol icmp --port 1", '"--port" needs --protocol tcp, udp or sctp'],
    ["--from 10.0.0.9 --to fd00::2 --port 1", "have no addresses of the same IP version"],
    ["default/client default/web", 'does not take arguments: got "default/client"; for example: '],
    ["--from default/client --to web:80", "--to web --port 80"],
  ])("a wrong call is refused: %s", async (words, expected) => {
    const { code, stderr } = await explain(words);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(expected);
  });
});
