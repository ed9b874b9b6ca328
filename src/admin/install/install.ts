import { NETWORK_CONFIG_DIRECTORY } from "../../config/installed-network-list.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { isServerBefore, readServerVersion } from "../../kube/server-version.ts";
import { DEFAULT_NAME } from "../../model/installation/installation.ts";
import { type IPPool, ipPool } from "../../model/ip-pool.ts";
import { listFollower } from "../../release/admission/policies.ts";
import { allCrdObjects } from "../../release/crds/released-crds.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { operatorObjects } from "../../release/manifests/operator.ts";
import { notesForServer, servedBy } from "../../release/older-servers.ts";
import { FIRST_SERVER, FIRST_WITH_EVERYTHING } from "../../release/supported-servers.ts";
import { formatYaml } from "../../yaml.ts";
import { withCluster } from "../cluster/access.ts";
import { INSTALLATION_PATH, POOLS_PATH } from "../cluster/installation.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../main/command.ts";
import type { Clock, ClusterAccess, Files, Terminal } from "../main/context.ts";
import { applyObjects, untilEstablished, versionOf } from "./apply-objects.ts";
import { type GivenInstallations, givenInstallations, refuseFileWithOptions } from "./given-installations.ts";
import { obstaclesIn } from "./obstacles.ts";
import { timeoutOf } from "./timeout.ts";
import { waitForRollout } from "./wait-for-rollout.ts";

const NAMESPACE = identity.operator;
const ON_HOST = `a host without Kubernetes, as with podman, is installed with the package ${identity.product} (dpkg -i) or with "make install", and a network config in ${NETWORK_CONFIG_DIRECTORY}; then see: ${identity.adminTool} status`;

export async function run(context: ClusterAccess & Files & Clock, given: Given): Promise<ExitCode> {
  const timeoutMilliseconds = timeoutOf(given);
  refuseFileWithOptions(given);
  const format = given.values.get("output") ?? "text";
  if (given.values.has("dry-run") || format !== "text") {
    return print(partsOf(await givenInstallations(context, given), given), format, context);
  }
  const install = async (client: KubeClient): Promise<ExitCode> => {
    const objects = clusterObjects(client, context.signal);
    const installations = await givenInstallations(context, given, {
      installation: await readInstallation(objects),
      pools: await readPools(objects),
    });
    await requireFree(objects);
    await requireSecrets(objects, installations);
    const parts = partsOf(installations, given);
    await applyParts(objects, await servedParts(objects, parts, context), context);
    return given.switches.has("wait") ? finish(objects, context, timeoutMilliseconds) : EXIT_OK;
  };
  return withCluster(context, given, install, ON_HOST);
}

interface Parts {
  readonly definitions: readonly KubeObject[];
  readonly operator: readonly KubeObject[];
  readonly installations: readonly KubeObject[];
  readonly changes: object | undefined;
}

async function readInstallation(objects: ClusterObjects): Promise<KubeObject | undefined> {
  const found = await objects.read(INSTALLATION_PATH);
  return found && { apiVersion: "", kind: "", ...found, metadata: { name: DEFAULT_NAME } };
}

/** Without those that the operator could not read either. */
async function readPools(objects: ClusterObjects): Promise<readonly IPPool[]> {
  const found = await objects.list(POOLS_PATH);
  return found.map((object) => ipPool.decode(object)).flatMap((decoded) => (decoded.ok ? [decoded.value] : []));
}

function partsOf({ objects, image, pullSecrets, changes }: GivenInstallations, { values }: Given): Parts {
  return {
    definitions: allCrdObjects(),
    operator: operatorObjects({ image: values.get("operator-image") ?? image, pullSecrets }),
    installations: objects,
    changes,
  };
}

function print({ definitions, operator, installations }: Parts, format: string, context: Terminal): ExitCode {
  const all = [...definitions, ...operator, ...installations];
  const list = { apiVersion: "v1", kind: "List", items: all };
  const asYaml = () => all.map((object) => `---\n${formatYaml(object)}`).join("");
  context.stdout(format === "json" ? `${JSON.stringify(list, undefined, 2)}\n` : asYaml());
  context.stderr(`Note: ${printedNote()}\n`);
  return EXIT_OK;
}

/** What is printed does not depend on which cluster can be reached. */
function printedNote(): string {
  const first = FIRST_WITH_EVERYTHING.replace(/\.0$/, "");
  return `The printed definitions are for API servers of ${first} or later; for an earlier one, apply those of older/operator-crds.yaml instead.`;
}

/** As the API server can serve them; says what it cannot. */
async function servedParts(objects: ClusterObjects, parts: Parts, context: Terminal): Promise<Parts> {
  const version = await readServerVersion(objects);
  if (isServerBefore(version, FIRST_SERVER)) {
    throw new PluginError("config-invalid", `Cannot install: the orchestrator has ${version}`, {
      details: `upgrade the orchestrator to ${FIRST_SERVER} or later first`,
    });
  }
  for (const note of notesForServer(version, [...parts.definitions, ...listFollower()]))
    context.stderr(`Note: ${note}\n`);
  return { ...parts, definitions: servedBy(version, parts.definitions) };
}

async function requireFree(objects: ClusterObjects): Promise<void> {
  const obstacles = obstaclesIn(await objects.list("/apis/apps/v1/daemonsets"));
  if (obstacles.length === 0) return;
  const messages = obstacles.map(({ message }) => message).join("; ");
  throw new PluginError("resource-in-use", `Cannot install: ${messages}`, {
    details: obstacles.map(({ remedy }) => remedy).join("; "),
  });
}

/** The operator copies them to its components: without them its pods would wait for ever. */
async function requireSecrets(objects: ClusterObjects, { pullSecrets, etcdSecret }: GivenInstallations): Promise<void> {
  for (const name of [...pullSecrets, ...(etcdSecret === undefined ? [] : [etcdSecret])]) {
    if ((await objects.read(`/api/v1/namespaces/${NAMESPACE}/secrets/${name}`)) !== undefined) continue;
    throw new PluginError(
      "resource-missing",
      `Cannot install: there is no Secret "${name}" in namespace "${NAMESPACE}"`,
      {
        details: `create it first: kubectl create namespace ${NAMESPACE}; kubectl --namespace ${NAMESPACE} create secret …`,
      },
    );
  }
}

async function applyParts(objects: ClusterObjects, parts: Parts, context: Terminal & Clock): Promise<void> {
  const { definitions, operator, installations, changes } = parts;
  await applyObjects(objects, definitions, { context, force: true });
  const missing = await untilEstablished(objects, definitions, context);
  if (missing.length > 0) {
    throw new PluginError("api-unavailable", `Cannot install: the API does not serve ${missing.join(", ")}`, {
      details: `kubectl describe crd ${missing[0]}`,
    });
  }
  await applyObjects(objects, operator, { context, force: true });
  if (changes === undefined) return applyObjects(objects, installations, { context, force: false });
  const before = versionOf(await objects.read(INSTALLATION_PATH));
  const after = versionOf(await objects.patch(INSTALLATION_PATH, changes));
  context.stdout(`Installation ${DEFAULT_NAME} ${before === after ? "unchanged" : "configured"}\n`);
}

async function finish(
  objects: ClusterObjects,
  context: Terminal & Clock,
  timeoutMilliseconds: number,
): Promise<ExitCode> {
  const { state } = await waitForRollout(objects, context, timeoutMilliseconds);
  if (state === "done") {
    context.stdout(`${identity.title} is installed. Test it: ${identity.adminTool} connectivity test\n`);
    return EXIT_OK;
  }
  context.stderr(`error: it is not ready within ${timeoutMilliseconds / 1_000} s; see: ${identity.adminTool} status\n`);
  return EXIT_FAILED;
}
