/**
 * Network policy: the node agent enforces a policy that closes a connection, the admin tool shows who was denied and says why, and a
 * label opens it.
 */
import { existsSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { formatYaml } from "../../src/yaml.ts";
import { type HostDaemon, startHostDaemon } from "../../test/support/host-daemon.ts";
import { askTcpWithin, serveTcp } from "../../test/support/namespace-sockets.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { type DemoEnvironment, PLUGIN_DIRECTORY } from "./environment.ts";
import type { StepResult } from "./output.ts";
import type { Pod } from "./pod-starters.ts";
import { addressOf } from "./traffic.ts";

/** Without the link `/var/run`, which would lead to the real host if followed from outside. */
const FLOWS_SOCKET = `${identity.runDirectory.replace(/^\/var\/run\//, "/run/")}/flows.sock`;
const PORT = 8000;
/** Milliseconds until a connection counts as closed. */
const PATIENCE = 250;
const POLICY = "demo-policy";

export async function startAgent({ host }: DemoEnvironment): Promise<StepResult & { readonly agent: HostDaemon }> {
  const agent = startHostDaemon(host, "agent", [`${PLUGIN_DIRECTORY}/${identity.nodeAgent}`]);
  await pollUntil(() => agent.log().includes("serves the plugins' calls"), "the node agent to start");
  return { agent, summary: `${identity.nodeAgent} enforces network policy on this host` };
}

export async function recordFlows({ admin, host }: DemoEnvironment): Promise<StepResult> {
  const configuration = {
    apiVersion: `${identity.apiGroup}/v3`,
    kind: "NodeAgentConfiguration",
    metadata: { name: "default" },
    spec: { flows: "Enabled" },
  };
  await admin(["apply", "-f", "-"], JSON.stringify(configuration));
  // A connection that began before belongs to no rule.
  await pollUntil(() => existsSync(host.view(FLOWS_SOCKET)), "the node agent to record flows");
  return { summary: "every connection of a pod, and the rule that decided about it" };
}

/** The first pod is a server, the second its client. */
export async function closeByPolicy(demo: DemoEnvironment, pods: readonly Pod[]): Promise<StepResult> {
  const [server, client] = ends(pods);
  using connection = openConnection(demo, server, client);
  await connection.until("open");
  const { namespace } = await labelEndpoint(demo, server, "role=server");
  const policy = {
    apiVersion: `${identity.apiGroup}/v3`,
    kind: "NetworkPolicy",
    metadata: { name: POLICY, namespace },
    spec: {
      selector: "role == 'server'",
      types: ["Ingress"],
      ingress: [
        {
          action: "Allow",
          protocol: "TCP",
          source: { selector: "role == 'client'" },
          destination: { ports: [PORT] },
        },
        { action: "Deny" },
      ],
    },
  };
  await demo.admin(["apply", "-f", "-"], JSON.stringify(policy));
  await connection.until("closed");
  return {
    summary: `"${server.name}" now accepts only pods labelled role=client: "${client.name}" cannot connect any more`,
    details: formatYaml(policy.spec),
  };
}

export async function showDenied({ admin }: DemoEnvironment, pods: readonly Pod[]): Promise<StepResult> {
  const [, client] = ends(pods);
  const words = ["flows", "--verdict", "denied", "--from", addressOf(client, 4), "--last", "1"];
  let details = "";
  await pollUntil(async () => {
    details = await admin(words);
    return details.includes(`${POLICY} ingress[1]`);
  }, "the denied connection to be recorded");
  return { summary: `who was denied, and by which rule: ${identity.adminTool} ${words.join(" ")}`, details };
}

export async function explainPolicy({ admin }: DemoEnvironment, pods: readonly Pod[]): Promise<StepResult> {
  const [server, client] = ends(pods).map((pod) => addressOf(pod, 4));
  const words = ["--from", client ?? "", "--to", server ?? "", "--port", String(PORT)];
  const details = await admin(["policy", "explain", ...words]);
  if (!/^Verdict: +denied$/m.test(details)) throw new Error(`The policy does not deny the connection:\n${details}`);
  return { summary: "why it cannot connect", details };
}

/** Then deletes the policy and stops the agent. */
export async function openByLabel(demo: DemoEnvironment, pods: readonly Pod[], agent: HostDaemon): Promise<StepResult> {
  const [server, client] = ends(pods);
  using connection = openConnection(demo, server, client);
  await labelEndpoint(demo, client, "role=client");
  const labelled = performance.now();
  await connection.until("open");
  const milliseconds = Math.round(performance.now() - labelled);
  const { namespace } = await endpointOf(demo, server);
  await demo.admin(["delete", "networkpolicy", POLICY, "--namespace", namespace]);
  await agent.stop();
  return { summary: `"${client.name}" is labelled role=client, and connects ${milliseconds} ms later` };
}

function ends([server, client]: readonly Pod[]): readonly [Pod, Pod] {
  if (server === undefined || client === undefined) throw new Error("Cannot show a policy: there are no two pods");
  return [server, client];
}

interface Connection extends Disposable {
  until(state: "open" | "closed"): Promise<void>;
}

function openConnection({ host }: DemoEnvironment, server: Pod, client: Pod): Connection {
  const listener = serveTcp(host.view(server.attachment.netns), server.name, PORT);
  const connect = async () => {
    const reply = await askTcpWithin(PATIENCE, host.view(client.attachment.netns), addressOf(server, 4), PORT);
    return reply.startsWith(`${server.name} `) ? "open" : "closed";
  };
  return {
    until: (state) => pollUntil(async () => (await connect()) === state, `the connection to be ${state}`),
    [Symbol.dispose]: () => listener[Symbol.dispose](),
  };
}

interface Endpoint {
  readonly namespace: string;
  readonly name: string;
}

export async function labelEndpoint(demo: DemoEnvironment, pod: Pod, label: string): Promise<Endpoint> {
  const endpoint = await endpointOf(demo, pod);
  await demo.admin(["label", "workloadendpoint", endpoint.name, label, "--namespace", endpoint.namespace]);
  return endpoint;
}

async function endpointOf({ admin }: DemoEnvironment, pod: Pod): Promise<Endpoint> {
  const { items } = JSON.parse(await admin(["get", "workloadendpoints", "-A", "-o", "json"])) as {
    items: { metadata: Endpoint; spec: { ipNetworks: readonly string[] } }[];
  };
  const address = addressOf(pod, 4);
  const found = items.find(({ spec }) => spec.ipNetworks.includes(`${address}/32`));
  if (found === undefined) throw new Error(`"${pod.name}" has no endpoint`);
  return found.metadata;
}
