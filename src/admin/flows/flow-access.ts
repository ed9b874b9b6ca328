/**
 * Who is asked for flows, and what comes back. The collector of this node, over its unix socket, which only root may use; or the
 * whole cluster, through the API server with the user's kubeconfig. Both get the same requests and send the same lines.
 */
import { accessSync, constants } from "node:fs";
import * as v from "valibot";
import { flowSocketPath } from "../../config/run-directory.ts";
import { PluginError } from "../../errors.ts";
import { statusAt } from "../../file-status.ts";
import { type FlowAnswer, flowAnswerSchema } from "../../flows/flow-answer.ts";
import type { FlowPath } from "../../flows/flow-request.ts";
import { apiVersionOf, FLOWS_API, identity } from "../../identity.ts";
import type { KubeLines } from "../../kube/api.ts";
import { statusOfRefusal } from "../../kube/require-ok.ts";
import { linesOf } from "../../lines.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";
import { FLOW_READER } from "../../release/workloads/names.ts";
import { clusterAccess } from "../cluster/access.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Call, Cluster, Terminal } from "../main/context.ts";
import { printable } from "../terminal/printable.ts";
import type { Parameters } from "./query.ts";

/** Ends when all is said, when the user stops the command, or when nobody reads its output any more. */
export type AskForFlows = (path: FlowPath, parameters: Parameters) => AsyncIterable<FlowAnswer>;

export async function withFlows<Result>(
  context: Call & Terminal & Cluster,
  given: Given,
  work: (ask: AskForFlows) => Promise<Result>,
): Promise<Result> {
  const stop = AbortSignal.any([context.signal, context.outputClosed]);
  const source = sourceOf(context, given);
  if (source.note !== undefined) context.stderr(`Note: ${source.note}\n`);
  if (source.kind === "node")
    return work((path, parameters) => answersOfNode(source.socket, { path, parameters, stop }));
  const client = await context.openKubeLines(clusterAccess(given, context.env));
  const namespace = given.values.get("namespace");
  try {
    return await work((path, parameters) => answersOfCluster(client, { path, parameters, stop }, namespace));
  } finally {
    await client.close();
  }
}

/** Of the collector behind this socket, which only root may use. */
export function answersOfNode(socket: string, request: FlowRequest): AsyncIterable<FlowAnswer> {
  return answersIn(askNode(socket, request));
}

/** As whoever the client is. `namespace`: asked for alone if the flows of all namespaces are refused. */
export function answersOfCluster(
  client: KubeLines,
  request: FlowRequest,
  namespace?: string,
): AsyncIterable<FlowAnswer> {
  return answersIn(askCluster(client, request, namespace));
}

/** Lines of JSON, as the collector of this node sends them; `undefined`: it records no flows. Throws if it does not answer. */
export async function linesOfNode(
  { env, signal }: Pick<Call, "env" | "signal">,
  parameters: Parameters,
): Promise<readonly string[] | undefined> {
  const socket = flowSocketPath(env);
  if (statusAt(socket) === undefined) return undefined;
  return await Array.fromAsync(askNode(socket, { path: "flows", parameters, stop: signal }));
}

type Source = { readonly note?: string } & (
  | { readonly kind: "node"; readonly socket: string }
  | { readonly kind: "cluster" }
);

/** What the user names, otherwise this node if it can be asked, otherwise the cluster if there is access to one. */
function sourceOf({ env }: Call, { switches, values }: Given): Source {
  const socket = flowSocketPath(env);
  const isNamed = values.has("kubeconfig") || values.has("context");
  if (switches.has("local")) {
    if (isNamed)
      throw new UsageError('"--local" asks this node, "--kubeconfig" and "--context" a cluster: give one of them');
    return { kind: "node", socket };
  }
  if (isNamed || (env["KUBECONFIG"] ?? "") !== "") return { kind: "cluster" };
  const obstacle = obstacleOf(socket);
  if (!hasClusterAccess(env)) return { kind: "node", socket };
  if (obstacle === undefined)
    return { kind: "node", socket, note: "these are the flows of this node; for all nodes: --kubeconfig FILE" };
  return { kind: "cluster", note: `this node is not asked: ${obstacle}; these are the flows of the cluster` };
}

function hasClusterAccess(env: Call["env"]): boolean {
  const home = env["HOME"];
  return Boolean(env["KUBERNETES_SERVICE_HOST"]) || (Boolean(home) && statusAt(`${home}/.kube/config`) !== undefined);
}

/** Why the collector of this node cannot be asked; `undefined` if it can. */
function obstacleOf(socket: string): string | undefined {
  if (statusAt(socket) === undefined) return "it records no flows";
  try {
    accessSync(socket, constants.W_OK);
    return undefined;
  } catch {
    return "only root may ask it";
  }
}

const { adminTool, nodeAgent } = identity;
const SWITCH_ON = `${adminTool} patch nodeagentconfiguration default --patch '{"spec": {"flows": "Enabled"}}'`;

export interface FlowRequest {
  readonly path: FlowPath;
  readonly parameters: Parameters;
  readonly stop: AbortSignal;
}

async function* askNode(socket: string, { path, parameters, stop }: FlowRequest): AsyncIterable<string> {
  try {
    const query = new URLSearchParams(parameters).toString();
    // Without a limit: a flow may be followed for hours in which nothing happens.
    const options = { unix: socket, signal: stop, timeout: false } as const;
    const response = await fetch(`http://node/${path}?${query}`, options);
    if (!response.ok) throw await refusalOf(response);
    yield* linesOf(response.body ?? new Blob([]).stream(), { unended: "left out" });
  } catch (failure) {
    if (stop.aborted) return;
    throw failure instanceof PluginError ? failure : unreachable(socket, failure);
  }
}

/** The node refuses a request that it does not understand. */
async function refusalOf(response: Response): Promise<PluginError> {
  const text = await response.text();
  const message = v.safeParse(v.object({ message: v.string() }), parsed(text));
  const reason = message.success ? message.output.message : text.trim();
  return new PluginError("resource-invalid", `Cannot show the flows: ${printable(reason)}`);
}

function unreachable(socket: string, cause: unknown): PluginError {
  const agent = `is ${nodeAgent} running? (${adminTool} node status)`;
  if (statusAt(socket) === undefined)
    return new PluginError("resource-missing", "Cannot show the flows of this node: it records none", {
      details: `switch flows on with: ${SWITCH_ON}; if they are on, ${agent}; for a cluster: --kubeconfig FILE`,
      cause,
    });
  if (obstacleOf(socket) !== undefined)
    return new PluginError("io-failure", `Cannot show the flows of this node: only root may use ${quoted(socket)}`, {
      details: "call the command as root, or ask the cluster with --kubeconfig FILE",
      cause,
    });
  return new PluginError("try-again-later", `Cannot show the flows of this node: ${quoted(socket)} does not answer`, {
    details: agent,
    cause,
  });
}

/** A user may read the flows of one namespace alone: that is another path. */
async function* askCluster(client: KubeLines, request: FlowRequest, namespace?: string): AsyncIterable<string> {
  try {
    yield* linesOfCluster(client, request);
  } catch (failure) {
    if (namespace === undefined || statusOfRefusal(failure) !== 403) throw failure;
    yield* linesOfCluster(client, request, `/namespaces/${encodeURIComponent(namespace)}`);
  }
}

async function* linesOfCluster(
  client: KubeLines,
  { path, parameters, stop }: FlowRequest,
  place = "",
): AsyncIterable<string> {
  const { follow, ...others } = parameters;
  // The API server ends every other request after a minute.
  const query = follow === undefined ? others : { ...others, watch: "true" };
  try {
    yield* client.lines(`/apis/${apiVersionOf(FLOWS_API)}${place}/${path}`, query, stop);
  } catch (failure) {
    const details = detailsOf(statusOfRefusal(failure), place);
    if (details !== undefined && failure instanceof PluginError)
      throw new PluginError(failure.kind, failure.message, { details, cause: failure.cause });
    // The API itself says which flow it does not know; without the API the answer is of the API server.
    const isUnserved = failure instanceof PluginError && failure.kind !== "resource-missing";
    if (statusOfRefusal(failure) !== 404 || !isUnserved) throw failure;
    throw new PluginError("resource-missing", "Cannot show the flows of the cluster: nothing serves them", {
      details: `switch flows on with: ${SWITCH_ON_IN_CLUSTER}`,
      cause: failure,
    });
  }
}

function detailsOf(status: number | undefined, place: string): string | undefined {
  if (status === 503)
    return `if flows were switched on a moment ago, try again; otherwise: kubectl get apiservice ${FLOWS_API.version}.${FLOWS_API.group}`;
  if (status !== 403) return undefined;
  const ofNamespace = place === "" ? ", for the cluster or for one namespace (then ask with -n NAMESPACE)" : "";
  return `an administrator can bind ClusterRole ${quoted(FLOW_READER)} to you${ofNamespace}`;
}

const SWITCH_ON_IN_CLUSTER = `kubectl patch installation default --type merge -p '{"spec": {"flows": {"mode": "Enabled"}}}'`;

async function* answersIn(lines: AsyncIterable<string>): AsyncIterable<FlowAnswer> {
  for await (const line of lines) {
    const answer = v.safeParse(flowAnswerSchema, parsed(line));
    if (answer.success) yield answer.output;
    else
      throw new PluginError("decode-failure", `Cannot read the flows: ${quoted(line)} is not a line of an answer`, {
        details: `is it ${identity.product} of another release?`,
      });
  }
}

function parsed(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
