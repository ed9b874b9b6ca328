/** `policy explain` for connections that pass interfaces of hosts. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { API_VERSION } from "../../../identity.ts";
import { resourceKey } from "../../../model/keys.ts";
import { EXIT_FAILED, EXIT_OK, EXIT_USAGE } from "../../main/command.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("profiles", "Profile", "kns.default", { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
  for (const number of [1, 2]) {
    await put("nodes", "Node", `node-${number}`, { bgp: { ipv4Address: `192.0.2.${number}/24` } });
    await put(
      "workloadendpoints",
      "WorkloadEndpoint",
      `node--${number}-k8s-pod${number}-eth0`,
      {
        ...{ orchestrator: "k8s", node: `node-${number}`, pod: `pod${number}`, endpoint: "eth0" },
        ...{ profiles: ["kns.default"], interfaceName: `xpod${number}`, ipNetworks: [`10.0.0.${number}/32`] },
      },
      { namespace: "default" },
    );
  }
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const metadata = { name, ...more };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function host(name: string, spec: object): Promise<void> {
  return put("hostendpoints", "HostEndpoint", name, { node: "node-1", ...spec }, { labels: { host: name } });
}

function policy(name: string, spec: object): Promise<void> {
  return put("globalnetworkpolicies", "GlobalNetworkPolicy", name, { selector: "has(host)", ...spec });
}

const ETH0 = { interfaceName: "eth0", expectedIPs: ["192.0.2.1"] };
const TO_NODE = "--from 198.51.100.7 --to 192.0.2.1";

function explain(words: string): Promise<AdminRun> {
  return runInside(["policy", "explain", ...words.split(" ")], { store, env: EMBEDDED });
}

async function verdictOf(words: string): Promise<string> {
  return JSON.parse((await explain(`${words} -o json`)).stdout).packets[0].verdict;
}

describe("policy explain, to a host", () => {
  test("without a host endpoint no policy applies", async () => {
    expect((await explain(`${TO_NODE} --port 80`)).stdout).toContain("no policy applies.\n");
  });

  test("names the host endpoint with the address, its interface and the rule", async () => {
    await host("node-1-eth0", ETH0);
    await policy("web", { ingress: [{ action: "Allow", protocol: "TCP", destination: { ports: [80] } }] });

    const { code, stdout, stderr } = await explain(`${TO_NODE} --port 80`);

    expect({ code, stderr }).toEqual({ code: EXIT_OK, stderr: "" });
    expect(stdout).toBe(
      [
        "Packet:     IPv4 TCP to port 80",
        "From:       198.51.100.7 (not a workload)",
        "To:         192.0.2.1 (node node-1)",
        "Verdict:    allowed",
        'Note:       published ports of node "node-1" are not followed here; ask on that host, or name the container',
        "",
        "Ingress of host endpoint node-1-eth0 (node node-1, interface eth0): allowed",
        '  Because:    GlobalNetworkPolicy "web", ingress rule 1 (spec.ingress[0]): allow TCP to port 80',
        "  Policies:   1.   GlobalNetworkPolicy web   tier default   decides",
        "",
      ].join("\n"),
    );
  });

  test("says that nothing allows it, and that no policy closes a failsafe port, also a configured one", async () => {
    await host("node-1-eth0", ETH0);
    const reason = async (port: number) => (await explain(`${TO_NODE} --port ${port}`)).stdout;

    expect(await reason(80)).toContain(
      "no ingress policy applies, and no profile of the endpoint allows it (it has none)",
    );
    expect(await reason(22)).toContain(
      "TCP port 22 is a failsafe port for incoming connections (failsafeInboundHostPorts), which no policy closes; " +
        "without it: denied because no ingress policy applies, and no profile of the endpoint allows it (it has none)\n",
    );
    await put("nodeagentconfigurations", "NodeAgentConfiguration", "node.node-1", {
      failsafeInboundHostPorts: [{ protocol: "TCP", port: 80 }],
    });
    expect(await reason(80)).toContain("TCP port 80 is a failsafe port");
    expect(await reason(22)).toContain("Verdict:    denied\n");
  });

  test("says what would decide about a failsafe port if it were not one, for a right and a wrong address", async () => {
    await host("node-1-eth0", ETH0);
    const ssh = { protocol: "TCP", destination: { ports: [22] } };
    await policy("ssh", {
      ingress: [
        { action: "Allow", ...ssh, source: { nets: ["198.51.100.7/32"] } },
        { action: "Deny", ...ssh },
        { action: "Allow" },
      ],
    });
    const because = async (from: string) => {
      const { stdout } = await explain(`--from ${from} --to 192.0.2.1 --port 22`);
      return /^ +Because: +.*?closes; (.*)$/m.exec(stdout)?.[1];
    };

    expect(await because("198.51.100.7")).toBe(
      'without it: allowed by GlobalNetworkPolicy "ssh", ingress rule 1 (spec.ingress[0]): allow TCP from 198.51.100.7/32 to port 22',
    );
    expect(await because("198.51.100.8")).toBe(
      'without it: denied by GlobalNetworkPolicy "ssh", ingress rule 2 (spec.ingress[1]): deny TCP to port 22',
    );
    // The verdict and the fields of the side stay those of the failsafe port.
    const { packets } = JSON.parse((await explain("--from 198.51.100.8 --to 192.0.2.1 --port 22 -o json")).stdout);
    expect(packets[0].sides).toEqual([
      {
        ...{ direction: "ingress", verdict: "allow", policies: [] },
        hostEndpoint: { name: "node-1-eth0", node: "node-1", interfaceName: "eth0" },
        reason: expect.stringContaining("TCP port 22 is a failsafe port"),
        withoutFailsafe: {
          verdict: "deny",
          reason: 'GlobalNetworkPolicy "ssh", ingress rule 2 (spec.ingress[1]): deny TCP to port 22',
          decidedBy: { kind: "GlobalNetworkPolicy", name: "ssh", rule: 1 },
          policies: [{ kind: "GlobalNetworkPolicy", name: "ssh", tier: "default", outcome: "decides" }],
        },
      },
    ]);
  });

  test("shows what doNotTrack and preDNAT policies decide before the others", async () => {
    await host("node-1-eth0", ETH0);
    const ports = (action: string, ...list: readonly number[]) => ({
      action,
      protocol: "TCP",
      destination: { ports: list },
    });
    await policy("raw", { doNotTrack: true, applyOnForward: true, ingress: [ports("Allow", 81)] });
    await policy("early", { preDNAT: true, applyOnForward: true, ingress: [ports("Deny", 82)] });
    await policy("late", { ingress: [ports("Allow", 80)] });

    expect((await explain(`${TO_NODE} --port 81`)).stdout).toContain(
      "allow TCP to port 81; doNotTrack: its replies need a rule of their own\n",
    );
    expect((await explain(`${TO_NODE} --port 82`)).stdout).toContain(
      "deny TCP to port 82; preDNAT: decided before the destination is rewritten\n",
    );
    expect((await explain(`${TO_NODE} --port 80`)).stdout).toContain(
      [
        "  Policies:   1.   GlobalNetworkPolicy raw     tier default, doNotTrack   no rule matches",
        "              2.   GlobalNetworkPolicy early   tier default, preDNAT      no rule matches",
        "              3.   GlobalNetworkPolicy late    tier default               decides",
      ].join("\n"),
    );
  });

  test("a host endpoint that is named decides, whatever the address", async () => {
    await host("eth0", { interfaceName: "eth0" });
    await host("eth1", { interfaceName: "eth1" });
    await policy("web", { selector: "host == 'eth1'", ingress: [{ action: "Allow" }] });
    const to = (name: string) => verdictOf(`--from 198.51.100.7 --to ${name} --port 80`);

    expect(await Promise.all(["hostendpoint/eth0", "hep/eth1", "HostEndpoint/eth1"].map(to))).toEqual([
      "deny",
      "allow",
      "allow",
    ]);
    expect((await explain("--from 198.51.100.7 --to hep/eth1 --port 80")).stdout).toContain(
      "To:         host endpoint eth1 (192.0.2.1, node node-1)\n",
    );
  });

  test("if the interface is not known, all host endpoints of the node are shown, and the verdict may depend on it", async () => {
    await host("eth0", { interfaceName: "eth0" });
    await host("eth1", { interfaceName: "eth1" });
    await policy("web", { selector: "host == 'eth1'", ingress: [{ action: "Allow" }] });

    const { stdout } = await explain(`${TO_NODE} --port 80`);

    expect(stdout).toContain("Verdict:    depends on the interface (");
    expect(stdout).toContain(
      "Ingress of host endpoint eth0 (node node-1, interface eth0, if it passes there): denied\n",
    );
    expect(stdout).toContain(
      "Ingress of host endpoint eth1 (node node-1, interface eth1, if it passes there): allowed\n",
    );
    expect(await verdictOf(`${TO_NODE} --port 22`)).toBe("allow");
    await host("all", { interfaceName: "*" });
    await policy("web", { selector: "has(host)", types: ["Ingress"] });
    expect(await verdictOf(`${TO_NODE} --port 80`)).toBe("deny");
  });

  test('"*" has every interface that no other host endpoint has', async () => {
    await host("all", { interfaceName: "*", expectedIPs: ["192.0.2.1"] });

    expect((await explain(`${TO_NODE} --port 80`)).stdout).toContain(
      "Ingress of host endpoint all (node node-1, all interfaces): denied\n",
    );
    await host("eth0", { ...ETH0, profiles: ["kns.default"] });
    expect(await verdictOf(`${TO_NODE} --port 80`)).toBe("allow");
  });
});

describe("policy explain, between nodes", () => {
  test("shows the egress of the host that it leaves, and the ingress of the host that it enters", async () => {
    await host("one", { interfaceName: "*" });
    await host("two", { interfaceName: "*", node: "node-2" });
    await policy("out", { selector: "host == 'one'", egress: [{ action: "Allow" }] });

    const { packets } = JSON.parse((await explain("--from 192.0.2.1 --to 192.0.2.2 --port 80 -o json")).stdout);

    expect(packets[0]).toMatchObject({
      verdict: "deny",
      sides: [
        { direction: "egress", verdict: "allow", hostEndpoint: { name: "one", node: "node-1", interfaceName: "*" } },
        { direction: "ingress", verdict: "deny", hostEndpoint: { name: "two", node: "node-2" } },
      ],
    });
  });

  test("forwarded connections of workloads need applyOnForward policies only if there are any", async () => {
    await host("one", { interfaceName: "*" });
    const web = "--from default/pod1 --to default/pod2 --port 80";

    expect((await explain(web)).stdout).toContain(
      [
        "Egress of host endpoint one (node node-1, all interfaces): allowed",
        "  Because:    no egress policy with applyOnForward applies, so it is forwarded",
      ].join("\n"),
    );
    await policy("forward", { applyOnForward: true, types: ["Egress"] });
    expect(await verdictOf(web)).toBe("deny");
    expect((await explain(web)).stdout).toContain('no rule of the policy that applies in tier "default" matches');
  });

  test("within a node no host endpoint applies", async () => {
    await host("one", { interfaceName: "*" });
    await policy("closed", { applyOnForward: true, types: ["Ingress", "Egress"] });

    expect(await verdictOf("--from default/pod1 --to 192.0.2.1 --port 80")).toBe("allow");
    expect(await verdictOf("--from 192.0.2.1 --to default/pod1 --port 80")).toBe("allow");
    expect(await verdictOf("--from 198.51.100.7 --to default/pod1 --port 80")).toBe("deny");
  });

  test("an address that only a host endpoint expects is one of its node", async () => {
    await host("eth9", { expectedIPs: ["203.0.113.9"] });

    expect((await explain("--from 203.0.113.9 --to 198.51.100.7 --port 80")).stdout).toContain(
      "Egress of host endpoint eth9 (node node-1, the interface with an expected address): denied\n",
    );
  });
});

describe("a host endpoint that cannot be used", () => {
  test.each([
    ["hostendpoint/eth1", EXIT_FAILED, 'did you mean "hostendpoint/eth0"?'],
    ["hep/nothing-like-it", EXIT_FAILED, "there are: eth0, far, many"],
    ["hep/far", EXIT_USAGE, 'add "expectedIPs" to it, or give an address'],
    ["hep/many", EXIT_USAGE, "give one of them: 192.0.2.8, 192.0.2.9"],
  ])("%s is refused", async (word, code, expected) => {
    await host("eth0", ETH0);
    await host("far", { node: "node-9", interfaceName: "eth0" });
    await host("many", { expectedIPs: ["192.0.2.8", "192.0.2.9"] });

    const run = await explain(`--from 198.51.100.7 --to ${word} --port 80`);

    expect(run.code).toBe(code);
    expect(run.stderr).toContain(expected);
  });
});
