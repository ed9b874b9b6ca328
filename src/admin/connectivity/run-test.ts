/** The steps of a connectivity test, inside its namespace. */

import type { InstalledImage } from "../cluster/installed-image.ts";
import type { Clock, Terminal } from "../main/context.ts";
import { type Check, checksOf, type Phase, probesOf, type TestNode, type TestSite } from "./checks.ts";
import { baselineKey, type CheckResult, isOpen, isSettled, judge, type Reports, withCauses } from "./judge.ts";
import { isSkipped, type SkipWord } from "./skip.ts";
import { accountObject, type PodPlace, type PolicyPhase, podName } from "./test-objects.ts";
import {
  copyPullSecrets,
  createPolicy,
  createServices,
  pollPause,
  pollsWithin,
  readRounds,
  type SiteOptions,
  type StartedPod,
  serviceAddresses,
  startPods,
} from "./test-site.ts";

/** How long connections and policies may take to become what they must be. */
const SETTLE_MILLISECONDS = 20_000;
const POLICY_PHASES: readonly PolicyPhase[] = ["deny ingress", "allow ingress", "deny egress"];

export interface TestOptions extends SiteOptions {
  readonly nodes: readonly TestNode[];
  readonly skip: ReadonlySet<SkipWord>;
  /** Whether pods of this network have host ports. */
  readonly hasHostPorts: boolean;
  /** Absent: the image was given by the user. */
  readonly image?: InstalledImage;
  readonly context: Terminal & Clock;
}

export async function runConnectivityTest(options: TestOptions): Promise<readonly CheckResult[]> {
  const { objects, plan, nodes, skip, hasHostPorts, image, context } = options;
  if (image !== undefined) await copyPullSecrets(options, image);
  await objects.create(`/api/v1/namespaces/${plan.namespace}/serviceaccounts`, accountObject(plan));
  context.stderr(`Starting pods on ${nodes.map(({ name }) => name).join(" and ")}\n`);
  const servers = placesOf(nodes, "server");
  const services = await createServices(options, servers);
  const hostPorts = skip.has("host-port") || !hasHostPorts ? [] : placesOf(nodes.slice(0, 1), "host-port");
  const serving = await startPods(
    options,
    [...servers, ...hostPorts].map((place) => ({ place })),
  );
  if (serving.every(({ place, state }) => place.role !== "server" || state !== "ready"))
    return serving.map(startResult);

  const site = await describeSite(options, services, serving);
  const planned = checksOf(site).filter((check) => !isSkipped(check.title, skip));
  const clients = [...placesOf(nodes, "client"), ...(skip.has("host") ? [] : placesOf(nodes, "host"))];
  const trying = await startPods(
    options,
    clients.map((place) => ({ place, probes: probesOf(planned, podName(place)) })),
  );

  const started = [...serving, ...trying];
  const running = new Set(started.filter(({ state }) => state === "ready").map(({ name }) => name));
  const checks = planned.filter(({ client, server = client }) => running.has(client) && running.has(server));
  return [
    ...started.map(startResult),
    ...notTried(site, options),
    ...withCauses(
      await tryConnections(options, checks, new Map(started.map(({ name, addresses }) => [name, addresses]))),
    ),
  ];
}

function placesOf(nodes: readonly TestNode[], role: PodPlace["role"]): readonly PodPlace[] {
  return nodes.map(({ name, number }) => ({ role, number, node: name }));
}

async function describeSite(
  { objects, nodes, plan }: TestOptions,
  services: ReadonlyMap<string, readonly string[]>,
  serving: readonly StartedPod[],
): Promise<TestSite> {
  const api = await objects.read("/api/v1/namespaces/default/services/kubernetes");
  const dns = await objects.list("/api/v1/services", { labelSelector: "k8s-app=kube-dns" });
  const ready = serving.filter(({ state }) => state === "ready");
  return {
    nodes,
    podAddresses: new Map(ready.map(({ name, addresses }) => [name, addresses])),
    serviceAddresses: services,
    apiServer: { addresses: serviceAddresses(api), port: 443 },
    hasDns: dns.length > 0,
    hostPort: plan.hostPort,
  };
}

function startResult({ name, place, state, reason }: StartedPod): CheckResult {
  const at = { title: "pod starts", from: place.node, to: name, family: undefined };
  if (state === "ready") return { ...at, result: "ok" };
  const remedy = `look at node ${place.node}: kubectl describe node ${place.node}, and the log of its kubelet`;
  return { ...at, result: "failed", reason, remedy };
}

function notTried({ hasDns }: TestSite, { nodes, skip, hasHostPorts }: TestOptions): readonly CheckResult[] {
  const at = { from: nodes[0]?.name ?? "", family: undefined, result: "skipped" } as const;
  const oneNode = { ...at, title: "pod to pod", to: "another node", reason: "only one node is Ready and schedulable" };
  const noDns = 'there is no Service with the label "k8s-app=kube-dns"';
  const noHostPorts = "host ports are disabled in the Installation";
  return [
    ...(nodes.length > 1 ? [] : [oneNode]),
    ...(hasDns || skip.has("dns") ? [] : [{ ...at, title: "pod to DNS", to: "cluster DNS", reason: noDns }]),
    ...(hasHostPorts || skip.has("host-port")
      ? []
      : [{ ...at, title: "pod to host port", to: at.from, reason: noHostPorts }]),
  ];
}

async function tryConnections(
  options: TestOptions,
  checks: readonly Check[],
  addresses: Reports["addresses"],
): Promise<readonly CheckResult[]> {
  const { context, skip } = options;
  const clients = [...new Set(checks.map(({ client }) => client))];
  const none: Reports = { rounds: new Map(), addresses, baseline: new Set() };
  context.stderr("Trying connections\n");
  // Also those that only a policy is to deny: they must be open before.
  const all = checks.map((check): Check => ({ ...check, phase: "connections", expected: "open" }));
  const before = await untilSettled(options, all, { reports: none, clients });
  const results = [...ofPhase(checks, "connections").map((check) => judge(check, before))];
  if (skip.has("policy")) return results;

  const baseline = new Set(all.filter((check) => isOpen(check, before)).map(baselineKey));
  for (const phase of POLICY_PHASES) {
    context.stderr(`Trying a NetworkPolicy: ${phase}\n`);
    await createPolicy(options, phase);
    const rounds = await readRounds(options, clients);
    // A round may have begun before the policy was created; the one after it has not.
    const after = new Map([...rounds].map(([client, { round }]) => [client, round + 1]));
    const reports = { rounds: new Map(), addresses, baseline };
    const own = ofPhase(checks, phase);
    const judged = await untilSettled(options, own, { reports, clients, after });
    results.push(...own.map((check) => judge(check, judged)));
  }
  return results;
}

function ofPhase(checks: readonly Check[], phase: Phase): readonly Check[] {
  return checks.filter((check) => check.phase === phase);
}

async function untilSettled(
  options: TestOptions,
  checks: readonly Check[],
  { reports, clients, after }: { reports: Reports; clients: readonly string[]; after?: ReadonlyMap<string, number> },
): Promise<Reports> {
  let current = reports;
  for (let poll = pollsWithin(SETTLE_MILLISECONDS); poll > 0; poll -= 1) {
    current = { ...reports, rounds: await readRounds(options, clients, after) };
    if (checks.every((check) => isSettled(check, current))) break;
    await pollPause(options);
  }
  return current;
}
