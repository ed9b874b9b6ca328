/**
 * The API of flows at one replica of the controllers. All replicas serve it: each has a link to every node.
 *
 *   certificates (flow-tls.ts) ─┬─> flow-api-server.ts <── API server, on behalf of a user
 *   front proxy (front-proxy.ts)┘         │
 *                                   cluster-flows.ts ──> node-links.ts <── collectors of the nodes
 */

import { portIn } from "../../config/port-variable.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient, KubeRequest } from "../../kube/api.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { requireOk } from "../../kube/require-ok.ts";
import { readServerVersion, tokenBindingProblem } from "../../kube/server-version.ts";
import { onceEach } from "../../log/once-each.ts";
import { isObject, objectsIn } from "../../model/shape.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { FLOWS_API_PORT, FLOWS_LINK_PORT, FLOWS_VARIABLE } from "../../release/workloads/names.ts";
import { onAnyAddress } from "../../web/web-listener.ts";
import { AccessReviews } from "./access-reviews.ts";
import { ClusterFlows, type ExpectedNodes } from "./cluster-flows.ts";
import { FlowApiServer } from "./flow-api-server.ts";
import { keepFlowTls } from "./flow-tls.ts";
import { readFrontProxy } from "./front-proxy.ts";
import { NodeLinks } from "./node-links.ts";
import { verifyNode } from "./verify-node.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface FlowApiProcess {
  readonly client: KubeClient;
  readonly ports: FlowApiPorts;
  readonly namespace: string;
  readonly isLeading: () => boolean;
  readonly signal: AbortSignal;
  readonly now: () => Date;
  readonly elapsed: () => number;
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
}

/** Certificates and authorities are compared this often. */
const COMPARE_MILLISECONDS = 15_000;
const RETRY_MILLISECONDS = 2_000;

export interface FlowApiPorts {
  readonly api: number;
  readonly links: number;
}

/** `undefined`: flows are off. Throws for a variable that cannot be used. */
export function flowApiPorts(environment: Environment): FlowApiPorts | undefined {
  const value = environment[FLOWS_VARIABLE] ?? "";
  if (value === "" || value === "Disabled") return undefined;
  if (value !== "Enabled") throw invalid(FLOWS_VARIABLE, value, "is not a switch; use Enabled or Disabled");
  return {
    api: portIn(environment, "FLOWS_API_PORT", FLOWS_API_PORT),
    links: portIn(environment, "FLOWS_LINK_PORT", FLOWS_LINK_PORT),
  };
}

/** Resolves when the signal is aborted and nothing is left open. */
export async function runFlowApi(means: FlowApiProcess): Promise<void> {
  const { client, ports, namespace, isLeading, signal, now, elapsed, wait, log } = means;
  // Agents of hosts have their accounts there.
  const accounts = [...new Set([namespace, "kube-system"])];
  const links = new NodeLinks({ verify: (token) => verifyNode(client, token, accounts), log });
  const expected = new NodesWithLinks(client, links, { elapsed, log });
  const flows = new ClusterFlows({
    links,
    expectedNodes: () => expected.read(signal),
    now: () => now().getTime(),
  });
  const server = new FlowApiServer({ flows, reviews: new AccessReviews(client, elapsed), log });
  const problems = onceEach((message) => log(message, "WARNING"));
  let served = "";
  try {
    while (!signal.aborted) {
      let pause = COMPARE_MILLISECONDS;
      try {
        const tls = await keepFlowTls({ client, namespace, now, isLeading });
        const proxy = await readFrontProxy(client);
        if (proxy === undefined) throw new Error(NO_FRONT_PROXY);
        const wanted = tls && JSON.stringify([tls.server.certificate, proxy]);
        if (tls !== undefined && wanted !== undefined && wanted !== served) {
          await onAnyAddress((host) => server.listen(host, ports.api, tls.server, proxy));
          await onAnyAddress(async (host) => links.listen(host, ports.links, tls.server));
          if (served === "") expected.startNow();
          served = wanted;
          await expected.tellProblem();
          log(`Serving the API of flows at port ${ports.api}, links of nodes at port ${ports.links}`, "INFO");
        }
        if (tls === undefined) pause = RETRY_MILLISECONDS;
        problems.forget();
      } catch (failure) {
        if (signal.aborted) break;
        problems.report(`Cannot serve the API of flows: ${failure instanceof Error ? failure.message : failure}`);
        pause = RETRY_MILLISECONDS;
      }
      await wait(pause, signal);
    }
  } finally {
    server.close();
    await links.close();
  }
}

const NO_FRONT_PROXY =
  "the API server has no authority for requests on behalf of users; start kube-apiserver with --requestheader-client-ca-file and --proxy-client-cert-file";

function invalid(name: string, value: string, problem: string): PluginError {
  return new PluginError("config-invalid", `Cannot use the environment variable ${name}: ${quoted(value)} ${problem}`);
}

const FRESH_MILLISECONDS = 30_000;
/** How long nodes have to open their links to a replica that has just started. */
const START_MILLISECONDS = 10_000;
const POLL_MILLISECONDS = 100;

/** The nodes with Linux, each of which should have a link. */
class NodesWithLinks {
  private known: (ExpectedNodes & { readonly at: number }) | undefined;
  private told = "";
  private started: number;

  constructor(
    private readonly client: Pick<KubeClient, "request">,
    private readonly links: NodeLinks,
    private readonly means: Pick<FlowApiProcess, "elapsed" | "log">,
  ) {
    this.started = means.elapsed();
  }

  startNow(): void {
    this.started = this.means.elapsed();
  }

  async read(signal: AbortSignal): Promise<ExpectedNodes> {
    const expected = await this.list();
    const { nodes, problem } = expected;
    const { elapsed } = this.means;
    while (problem === undefined && !signal.aborted && elapsed() - this.started < START_MILLISECONDS) {
      const linked = new Set(this.links.nodes);
      if (nodes.every((node) => linked.has(node))) break;
      await Bun.sleep(POLL_MILLISECONDS);
    }
    return expected;
  }

  /** Logs why no node can open a link, if that is so. */
  async tellProblem(): Promise<void> {
    const { problem = "" } = await this.list();
    if (problem !== "" && problem !== this.told) this.means.log(problem, "WARNING");
    this.told = problem;
  }

  private async list(): Promise<ExpectedNodes> {
    const { elapsed } = this.means;
    if (this.known !== undefined && elapsed() - this.known.at < FRESH_MILLISECONDS) return this.known;
    const request: KubeRequest = {
      ...{ method: "GET", path: "/api/v1/nodes", query: { labelSelector: "kubernetes.io/os!=windows" } },
      accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
    };
    const list: unknown = parseJson(requireOk(await this.client.request(request), request));
    const nodes = objectsIn(isObject(list) ? list["items"] : undefined).flatMap(({ metadata }) => {
      const name = isObject(metadata) ? metadata["name"] : undefined;
      return typeof name === "string" ? [name] : [];
    });
    const problem = await this.linkProblem();
    this.known = { at: elapsed(), nodes, ...(problem === undefined ? {} : { problem }) };
    return this.known;
  }

  /** Nodes show with their tokens which node they are. */
  private async linkProblem(): Promise<string | undefined> {
    const objects = clusterObjects(this.client, AbortSignal.timeout(FRESH_MILLISECONDS));
    const problem = tokenBindingProblem(await readServerVersion(objects).catch(() => ""));
    if (problem === undefined) return undefined;
    return `no node can open a link to the controllers: ${problem}; until then ask each node, as root: ${identity.adminTool} flows --local`;
  }
}
