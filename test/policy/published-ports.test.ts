/**
 * Published ports of containers without pods, under policy: what real packets from outside and from another container do, what
 * `apply` and `delete` say about it, and what `policy explain` says about the same packets.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { API_VERSION, identity } from "../../src/identity.ts";
import { launchAgent } from "../agent/agent.ts";
import { CLIENT4, CLIENT6, HOST4, HOST6, openPortHost, type Pod, type PortHost } from "../portmap/port-host.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { patience } from "../support/proof-size.ts";
import { builtProgram } from "../support/run-plugin.ts";

const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);
const NETWORK = "ports";

describe("a published port", () => {
  let world: PortHost;
  let web: Pod;
  let other: Pod;
  let server: Disposable;
  let addresses: readonly string[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    world = await openPortHost();
    world.install({ main: "own" });
    const network = world.network({ main: "own" });
    web = await world.makePod("web", [{ hostPort: 8080, containerPort: 80, protocol: "tcp" }]);
    other = await world.makePod("other", []);
    await network.add(web.attachment);
    addresses = (await network.add(other.attachment)).ips.map(({ address }) => address.split("/")[0] ?? "");
    server = serveTcp(web.netns, "web", 80);
    await admin(["node", "register", "--name", "node-1"]);
    const agent = launchAgent(world.host);
    await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the agent to serve");
  });
  afterAll(async () => {
    server?.[Symbol.dispose]();
    await world?.[Symbol.asyncDispose]();
  });

  test("stays open to the outside under a policy that selects nobody, and explain says so", async () => {
    expect(await outcomes("allow")).toEqual(ALLOWED);
    const { stderr } = await apply("typo", { selector: "rol == 'web'", types: ["Ingress"] });

    await untilEnforced();
    expect(await outcomes("allow")).toEqual(ALLOWED);
    expect(await explained()).toEqual(ALLOWED);
    expect(stderr).toContain("note: networkpolicy/default/typo selects nothing now");
    expect(stderr).not.toContain("closes");
  });

  test("is closed by a policy that selects its container, which apply and explain say, and open again without it", async () => {
    await label("web", "role=web");
    const spec = {
      selector: "role == 'web'",
      ingress: [{ action: "Allow", source: { selector: "role == 'client'" } }],
    };

    expect((await apply("web", spec)).stderr).toContain("note: closes ingress of 1 container: web");
    await pollUntil(async () => !(await arrives(world.client, HOST4)), "the port to be closed");
    expect(await outcomes("deny")).toEqual(CLOSED);
    expect(await explained()).toEqual(CLOSED);

    await label("other", "role=client");
    await pollUntil(() => arrives(other.netns, HOST4), "the port to be open for the client");
    const forClient = { ...CLOSED, "other 4": "allow", "other 6": "allow" };
    expect(await outcomes("deny")).toEqual(forClient);
    expect(await explained()).toEqual(forClient);

    expect((await admin(["delete", "networkpolicy", "web"])).stderr).toContain(
      "note: opens ingress of 1 container: web",
    );
    await pollUntil(() => arrives(world.client, HOST4), "the port to be open again");
    expect(await explained()).toEqual(ALLOWED);
  });

  test("is not what a rule with its number means: no packet arrives, and apply and explain say why", async () => {
    await label("web", "publishing=yes");
    const rule = { action: "Allow", protocol: "TCP", destination: { ports: [8080] } };
    const { stderr } = await apply("wrong", { selector: "publishing == 'yes'", ingress: [rule] });

    expect(stderr).toContain("note: web publishes 8080 as 80: rules see port 80\n");
    await pollUntil(async () => !(await arrives(world.client, HOST4)), "the port to be closed");
    const ask = (to: string) => admin(["policy", "explain", "--from", CLIENT4, "--to", to, "--port", "8080"]);
    const text = async (to: string) => (await ask(to)).stdout.replace(/\s+/g, " ");
    expect(await text("web")).toContain("packets to port 8080 of the host arrive at its port 80, which is denied");
    expect(await text("node-1")).toMatch(/is web:80 .* Verdict: denied/);
    await admin(["delete", "networkpolicy", "wrong"]);
    await pollUntil(() => arrives(world.client, HOST4), "the port to be open again");
  });

  test("of a host whose endpoint names an interface that it does not have: apply says which it has", async () => {
    const spec = { node: "node-1", interfaceName: "eth77", profiles: [`${identity.product}-defaut-allow`] };
    const endpoint = { apiVersion: API_VERSION, kind: "HostEndpoint", metadata: { name: "typo" }, spec };
    const { stderr } = await admin(["apply", "-f", "-"], JSON.stringify(endpoint));

    expect(stderr).toContain('note: node node-1 has no interface "eth77" (hostendpoint/typo): links are ');
    expect(stderr).toContain(`did you mean "${identity.product}-default-allow"?\n`);
    expect(stderr).not.toContain("closes");
    await admin(["delete", "hostendpoint", "typo"]);
  });

  test("is closed to other networks by the profile of its network, once somebody edits it", async () => {
    expect((await admin(["label", "profile", NETWORK, "closed=yes"])).stderr).toContain(
      "note: closes ingress of 2 containers: other, web",
    );
    await pollUntil(async () => !(await arrives(world.client, HOST4)), "the port to be closed");
    // Not to its own network.
    const ofNetwork = { ...CLOSED, "other 4": "allow", "other 6": "allow" };
    expect(await outcomes("deny")).toEqual(ofNetwork);
    expect(await explained()).toEqual(ofNetwork);
    await admin(["label", "profile", NETWORK, "closed-"]);
    await pollUntil(() => arrives(world.client, HOST4), "the port to be open again");
  });

  const ALLOWED = {
    "outside 4": "allow",
    "outside 6": "allow",
    "other 4": "allow",
    "other 6": "allow",
    "host 4": "allow",
  };
  const CLOSED = { "outside 4": "deny", "outside 6": "deny", "other 4": "deny", "other 6": "deny", "host 4": "allow" };

  /** FROM FAMILY: its namespace, its address, and the address of the host that it uses. */
  const ways = () =>
    ({
      "outside 4": [world.client, CLIENT4, HOST4],
      "outside 6": [world.client, CLIENT6, HOST6],
      "other 4": [other.netns, addresses[0] ?? "", HOST4],
      "other 6": [other.netns, addresses[1] ?? "", HOST6],
      "host 4": [world.netns, HOST4, HOST4],
    }) as const;

  async function outcomes(expected: "allow" | "deny"): Promise<Readonly<Record<string, string>>> {
    const limit = (expected === "allow" ? 3_000 : 700) * patience;
    const each = Object.entries(ways()).map(async ([name, [netns, , to]]) => [
      name,
      (await arrives(netns, to, name.startsWith("host") ? 3_000 * patience : limit)) ? "allow" : "deny",
    ]);
    return Object.fromEntries(await Promise.all(each));
  }

  async function explained(): Promise<Readonly<Record<string, string>>> {
    const found: Record<string, string> = {};
    for (const [name, [, from, to]] of Object.entries(ways())) {
      const words = ["policy", "explain", "--from", from, "--to", to, "--port", "8080", "-o", "json"];
      const [packet] = JSON.parse((await admin(words)).stdout).packets;
      expect(packet.target).toMatchObject({ workload: "web", port: 80 });
      found[name] = packet.verdict;
    }
    return found;
  }

  async function arrives(netns: string, to: string, limit = 700 * patience): Promise<boolean> {
    return (await askTcpWithin(limit, netns, to, 8080)).startsWith("web ");
  }

  async function admin(
    words: readonly string[],
    stdin = "",
  ): Promise<{ readonly stdout: string; readonly stderr: string }> {
    const finished = await world.host.run([builtProgram(identity.adminTool), ...words], { stdin });
    if (finished.code !== 0) throw new Error(`${words.join(" ")} failed: ${finished.stdout}${finished.stderr}`);
    return finished;
  }

  function apply(name: string, spec: object) {
    const metadata = { name, namespace: "default" };
    const policy = { apiVersion: API_VERSION, kind: "NetworkPolicy", metadata, spec };
    return admin(["apply", "-f", "-"], JSON.stringify(policy));
  }

  async function label(container: string, text: string): Promise<void> {
    const { items } = JSON.parse((await admin(["get", "workloadendpoints", "-A", "-o", "json"])).stdout);
    const found = items.find((each: { spec: { containerID: string } }) => each.spec.containerID === container);
    await admin(["label", "workloadendpoint", found.metadata.name, text]);
  }

  async function untilEnforced(): Promise<void> {
    await pollUntil(async () => {
      const { stdout } = await world.host.run(["nft", "list", "table", "inet", identity.policyTable]);
      return stdout.includes("workloads_from");
    }, "the agent to write its table");
  }
});
