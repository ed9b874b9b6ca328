/**
 * A host whose pods talk all the time, as policies of it allow and deny: for the console to look at. Only the shop's "web" and "api"
 * are meant to talk; "report" asks the database too, which nobody has allowed.
 *
 *   web ── 8080 ──> api ── 5432 ──> db
 *   report ── 5432 ──X
 */
import { identity } from "../../src/identity.ts";
import type { HostDaemon } from "../../test/support/host-daemon.ts";
import { askTcpWithin, serveTcp } from "../../test/support/namespace-sockets.ts";
import { type DemoEnvironment, NODE } from "./environment.ts";
import { namespaces, type Pod } from "./pod-starters.ts";
import { labelEndpoint, recordFlows, startAgent } from "./policy.ts";
import { addressOf } from "./traffic.ts";

type Name = "web" | "api" | "db" | "report";
const NAMES: readonly Name[] = ["web", "api", "db", "report"];
/** The port on which each one listens. */
const PORTS: Readonly<Record<Name, number>> = { web: 80, api: 8080, db: 5432, report: 9000 };
const TALKS: readonly (readonly [from: Name, to: Name])[] = [
  ["web", "api"],
  ["api", "db"],
  ["report", "db"],
  ["web", "report"],
];
/** Milliseconds until a connection counts as closed. */
const PATIENCE = 250;
const PAUSE = 400;

export interface LiveHost extends Disposable {
  readonly agent: HostDaemon;
  readonly addresses: Readonly<Record<Name, string>>;
  connect(from: Name, to: Name): Promise<"open" | "closed">;
  /** Until it is stopped. */
  talk(stop: AbortSignal): Promise<void>;
}

export async function openLiveHost(demo: DemoEnvironment): Promise<LiveHost> {
  await createRecords(demo);
  const { agent } = await startAgent(demo);
  await recordFlows(demo);
  const starter = namespaces(demo);
  const pods = new Map<Name, Pod>();
  let namespace = "";
  for (const name of NAMES) {
    const pod = await starter.start(name);
    pods.set(name, pod);
    ({ namespace } = await labelEndpoint(demo, pod, `app=${name}`));
  }
  await applyPolicies(demo, namespace);
  const { host } = demo;
  const of = (name: Name): Pod => pods.get(name) ?? expectPod(name);
  const listeners = NAMES.map((name) => serveTcp(host.view(of(name).attachment.netns), name, PORTS[name]));
  const connect = async (from: Name, to: Name) => {
    const reply = await askTcpWithin(PATIENCE, host.view(of(from).attachment.netns), addressOf(of(to), 4), PORTS[to]);
    return reply.startsWith(`${to} `) ? "open" : "closed";
  };
  return {
    agent,
    addresses: {
      ...{ web: addressOf(of("web"), 4), api: addressOf(of("api"), 4) },
      ...{ db: addressOf(of("db"), 4), report: addressOf(of("report"), 4) },
    },
    connect,
    async talk(stop) {
      while (!stop.aborted) {
        for (const [from, to] of TALKS) if (!stop.aborted) await connect(from, to);
        await Bun.sleep(PAUSE);
      }
    },
    [Symbol.dispose]() {
      for (const listener of listeners) listener[Symbol.dispose]();
    },
  };
}

async function createRecords({ admin }: DemoEnvironment): Promise<void> {
  await admin(["datastore", "init"]);
  const pools = { "demo-ipv4": "10.244.0.0/24", "demo-ipv6": "fd24:4::/112" };
  const resources = [
    ...Object.entries(pools).map(([name, cidr]) => ({
      ...{ kind: "IPPool", metadata: { name }, spec: { cidr, natOutgoing: true } },
    })),
    { kind: "Node", metadata: { name: NODE }, spec: {} },
  ];
  await apply(admin, ...resources);
}

async function applyPolicies({ admin }: DemoEnvironment, namespace: string): Promise<void> {
  const ingress = (from: Name, port: number) => ({
    ...{ action: "Allow", protocol: "TCP", source: { selector: `app == '${from}'` } },
    destination: { ports: [port] },
  });
  const policy = (to: Name, from: Name) => ({
    kind: "NetworkPolicy",
    metadata: { name: to, namespace },
    spec: { order: 100, selector: `app == '${to}'`, types: ["Ingress"], ingress: [ingress(from, PORTS[to])] },
  });
  await apply(admin, policy("db", "api"), policy("api", "web"));
}

async function apply(admin: DemoEnvironment["admin"], ...resources: readonly object[]): Promise<void> {
  const documents = resources.map((resource) => JSON.stringify({ apiVersion: `${identity.apiGroup}/v3`, ...resource }));
  await admin(["apply", "-f", "-"], documents.join("\n---\n"));
}

function expectPod(name: string): never {
  throw new Error(`Cannot find pod "${name}"`);
}
