import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { deleteInstallations, SKIP_CLEANUP_ANNOTATION } from "../../operator/request-deletion.ts";
import { crdObjects, operatorCrdObjects } from "../../release/crds/released-crds.ts";
import { operatorObjects } from "../../release/manifests/operator.ts";
import { describeObject, objectPath } from "../../release/object-kinds.ts";
import { withCluster } from "../cluster/access.ts";
import { INSTALLATION_PATH, POOLS_PATH } from "../cluster/installation.ts";
import { EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Call, Clock, ClusterAccess, Terminal } from "../main/context.ts";
import { networkPods } from "./network-pods.ts";
import { obstaclesIn } from "./obstacles.ts";
import { timeoutOf } from "./timeout.ts";

const { operator, adminTool, title } = identity;
const OPERATOR_PATH = `/apis/apps/v1/namespaces/${operator}/deployments/${operator}`;
const SKIP_CLEANUP = { metadata: { annotations: { [SKIP_CLEANUP_ANNOTATION]: "true" } } };
const NAMED_PODS = 10;
const ON_HOST = `from a host without Kubernetes, as with podman, remove its containers, then the package (dpkg --purge ${identity.product}), or what "make install" has installed (make uninstall)`;

export async function run(context: ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  const timeoutMilliseconds = timeoutOf(given);
  const uninstall = async (client: KubeClient): Promise<ExitCode> => {
    const objects = clusterObjects(client, context.signal);
    await requireOperatorInstall(objects);
    if (!given.switches.has("force")) await requireNoPods(objects);
    await requireOperator(objects);
    if (given.switches.has("skip-nodes")) await objects.patch(INSTALLATION_PATH, SKIP_CLEANUP);
    await removeInstallations(client, context, timeoutMilliseconds);
    await removeOperator(objects, context);
    if (given.switches.has("crds") || given.switches.has("all")) await removeDefinitions(objects, context);
    context.stdout(`${title} is uninstalled.\n`);
    return EXIT_OK;
  };
  return withCluster(context, given, uninstall, ON_HOST);
}

/** What a manifest has installed, only that manifest removes. */
async function requireOperatorInstall(objects: ClusterObjects): Promise<void> {
  const own = obstaclesIn(await objects.list("/apis/apps/v1/daemonsets")).find(({ isOwn }) => isOwn);
  if (own === undefined) return;
  throw new PluginError("resource-in-use", `Cannot uninstall: ${own.message}`, { details: own.remedy });
}

async function requireNoPods(objects: ClusterObjects): Promise<void> {
  if ((await objects.read(INSTALLATION_PATH)) === undefined) return;
  const pods = networkPods(await objects.list("/api/v1/pods"));
  if (pods.length === 0) return;
  const named = pods
    .slice(0, NAMED_PODS)
    .map(({ name }) => name)
    .join(", ");
  const removals = [...new Set(pods.map(({ removal }) => removal))].slice(0, NAMED_PODS);
  const more = pods.length > NAMED_PODS ? `, and ${pods.length - NAMED_PODS} more` : "";
  throw new PluginError(
    "resource-in-use",
    `Cannot uninstall: ${counted(pods.length, "pod")} on the network: ${named}${more}`,
    {
      details: [
        "end them first, or they cannot be stopped later:",
        ...removals.map((command) => `  ${command}`),
        "--force uninstalls nevertheless",
      ].join("\n"),
    },
  );
}

async function requireOperator(objects: ClusterObjects): Promise<void> {
  if ((await objects.read(INSTALLATION_PATH)) === undefined || (await objects.read(OPERATOR_PATH)) !== undefined)
    return;
  throw new PluginError("resource-missing", "Cannot uninstall: there is no operator that removes the Installation", {
    details: `install it again first: ${adminTool} install`,
  });
}

async function removeInstallations(
  client: Pick<KubeClient, "request">,
  context: Call & Terminal & Clock,
  timeoutMilliseconds: number,
): Promise<void> {
  const { signal } = context;
  const timeOver = new AbortController();
  const request: KubeClient["request"] = (each) =>
    client.request({ ...each, signal }).catch((failure: unknown) => {
      signal.throwIfAborted();
      throw failure;
    });
  let waited = 0;
  let last = "";
  const isGone = await deleteInstallations({
    client: { request },
    signal: AbortSignal.any([signal, timeOver.signal]),
    async wait(milliseconds) {
      waited += milliseconds;
      if (waited > timeoutMilliseconds) timeOver.abort();
      else await context.wait(milliseconds);
    },
    log(message) {
      last = message;
      context.stdout(`${message}\n`);
    },
  });
  signal.throwIfAborted();
  if (!isGone) throw notRemoved(last, timeoutMilliseconds);
}

function notRemoved(line: string, timeoutMilliseconds: number): PluginError {
  const message = `Cannot uninstall: the Installation is not removed within ${timeoutMilliseconds / 1_000} s: ${line}`;
  return new PluginError("resource-in-use", message, {
    details: `run it again to wait longer; --skip-nodes does not wait for nodes that cannot be cleaned up`,
  });
}

/** The last ones first: its account is needed until the end. */
async function removeOperator(objects: ClusterObjects, context: Terminal): Promise<void> {
  for (const object of operatorObjects({ image: "" }).toReversed()) {
    const isRemoved = await objects.remove(objectPath(object), { propagationPolicy: "Background" });
    if (isRemoved) context.stdout(`${describeObject(object)} deleted\n`);
  }
}

/** Nobody would release the pools any more: then their finalizers keep them, and their definition, for ever. */
async function removeDefinitions(objects: ClusterObjects, context: Terminal): Promise<void> {
  for (const { metadata } of await objects.list(POOLS_PATH)) {
    const name = isObject(metadata) ? String(metadata["name"]) : "";
    await objects.patch(`${POOLS_PATH}/${name}`, { metadata: { finalizers: [] } });
  }
  const definitions = [...operatorCrdObjects(), ...crdObjects()];
  for (const object of definitions) {
    if (await objects.remove(objectPath(object))) context.stdout(`${describeObject(object)} deleted\n`);
  }
}
