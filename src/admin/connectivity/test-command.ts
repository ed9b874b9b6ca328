import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { quoted } from "../../quote.ts";
import { defaultImage } from "../../release/workloads/image.ts";
import { withCluster } from "../cluster/access.ts";
import { hasNoHostPorts } from "../cluster/installation.ts";
import { findInstalledImage } from "../cluster/installed-image.ts";
import { clusterNodes } from "../cluster/nodes.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Call, Clock, ClusterAccess, Terminal } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { chooseTestNodes } from "./choose-nodes.ts";
import type { CheckResult } from "./judge.ts";
import { DEFAULT_HOST_PORT, DEFAULT_TIMEOUT } from "./options.ts";
import { parsePort } from "./port.ts";
import { isFailed, reportText } from "./report.ts";
import { runConnectivityTest } from "./run-test.ts";
import { skipWords } from "./skip.ts";
import { namespaceObject } from "./test-objects.ts";

const REMOVAL_POLLS = 120;
const POLL_MILLISECONDS = 500;

export async function run(context: ClusterAccess & Clock, given: Given): Promise<ExitCode> {
  const settings = settingsOf(given);
  const results = await withCluster(context, given, (client) => testIn(client, context, settings));
  const ok = !results.some(isFailed);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, checks: results }, undefined, 2)}\n`);
  else context.stdout(reportText(results, stdoutPage(context)));
  return ok ? EXIT_OK : EXIT_FAILED;
}

interface Settings {
  readonly nodes: readonly string[];
  readonly image: string | undefined;
  readonly hostPort: number;
  readonly skip: ReturnType<typeof skipWords>;
  readonly timeoutMilliseconds: number;
}

function settingsOf({ values, lists }: Given): Settings {
  const timeout = values.get("timeout") ?? DEFAULT_TIMEOUT;
  if (!isDuration(timeout)) throw new UsageError(`${quoted(timeout)} is not a duration; use for example "90s" or "2m"`);
  const hostPort = parsePort(values.get("host-port") ?? String(DEFAULT_HOST_PORT));
  if (hostPort === 0 || hostPort === 65_535) throw new UsageError('"--host-port" must be between 1 and 65534');
  return {
    nodes: lists.get("node") ?? [],
    image: values.get("image"),
    hostPort,
    skip: skipWords(lists.get("skip") ?? []),
    timeoutMilliseconds: millisecondsOf(timeout),
  };
}

async function testIn(
  client: KubeClient,
  context: Call & Terminal & Clock,
  { nodes: named, image: given, hostPort, skip, timeoutMilliseconds }: Settings,
): Promise<readonly CheckResult[]> {
  const objects = clusterObjects(client, context.signal);
  const nodes = chooseTestNodes(clusterNodes(await objects.list("/api/v1/nodes")), named);
  const installed = given === undefined ? await findInstalledImage(objects) : undefined;
  const namespace = `${identity.product}-connectivity-test-${context.uuid().slice(0, 8)}`;
  const plan = {
    namespace,
    image: given ?? installed?.name ?? defaultImage(context.version),
    pullSecrets: installed?.pullSecrets ?? [],
    hostPort,
  };
  context.stderr(`Creating namespace ${namespace}\n`);
  try {
    await objects.create("/api/v1/namespaces", namespaceObject(namespace));
    return await runConnectivityTest({
      objects,
      context,
      plan,
      nodes,
      skip,
      hasHostPorts: !(await hasNoHostPorts(objects)),
      timeoutMilliseconds,
      ...(installed === undefined ? {} : { image: installed }),
    });
  } finally {
    // Without the signal of the command: also after it.
    await removeNamespace(clusterObjects(client), namespace, context);
  }
}

async function removeNamespace(
  objects: ClusterObjects,
  namespace: string,
  context: Call & Terminal & Clock,
): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}`;
  context.stderr(`Deleting namespace ${namespace}\n`);
  try {
    await objects.remove(path);
    for (let poll = REMOVAL_POLLS; poll > 0 && !context.signal.aborted; poll -= 1) {
      if ((await objects.read(path)) === undefined) return;
      await context.wait(POLL_MILLISECONDS);
    }
    if (!context.signal.aborted) context.stderr(`Namespace ${namespace} is still being deleted\n`);
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "interrupted") return;
    context.stderr(
      `Cannot delete namespace ${namespace}: ${describeFailure(failure)}\nRun: kubectl delete namespace ${namespace}\n`,
    );
  }
}
