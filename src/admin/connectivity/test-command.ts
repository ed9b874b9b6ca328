import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { type ClusterObjects, clusterObjects } from "../../kube/objects.ts";
import { isDuration, millisecondsOf } from "../../model/duration.ts";
import { quoted } from "../../quote.ts";
import { defaultImage } from "../../release/workloads/image.ts";
import { CLUSTER_OPTIONS, withCluster } from "../cluster/access.ts";
import { hasNoHostPorts } from "../cluster/installation.ts";
import { findInstalledImage } from "../cluster/installed-image.ts";
import { clusterNodes } from "../cluster/nodes.ts";
import {
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  type Given,
  UsageError,
  wantsJson,
} from "../main/command.ts";
import { stdoutPage } from "../terminal/page.ts";
import { chooseTestNodes } from "./choose-nodes.ts";
import type { CheckResult } from "./judge.ts";
import { parsePort } from "./port.ts";
import { isFailed, reportText } from "./report.ts";
import { runConnectivityTest } from "./run-test.ts";
import { SKIP_WORDS, skipWords } from "./skip.ts";
import { namespaceObject } from "./test-objects.ts";

const DEFAULT_HOST_PORT = 12_080;
const DEFAULT_TIMEOUT = "60s";
const REMOVAL_POLLS = 120;
const POLL_MILLISECONDS = 500;

export const connectivityTest: Command = {
  kind: "command",
  name: "test",
  summary: "Test the connections of pods in the cluster",
  description: [
    "Starts pods on two nodes (on one if there is only one) in a namespace of its own, and lets them connect: pods of the same and of",
    "different nodes, Services, hosts, a host port, the API server, the cluster DNS, and what NetworkPolicies deny and allow; in every",
    "address family that pods have. Prints a table, the reason of each failure and what to do about it. The exit code is 1 if a check has failed.",
    "The pods run the image of the installed network, which contains everything that is needed; --image names another copy of it.",
    "The namespace is deleted at the end, also after Ctrl-C.",
  ].join("\n"),
  options: [
    { name: "node", value: "NAME", repeats: true, summary: "Test this node; may be repeated (default: two nodes)" },
    { name: "image", value: "IMAGE", summary: "Image of the test pods (default: the image of the installed network)" },
    {
      name: "host-port",
      value: "PORT",
      summary: `Host port to test; the next port is used on the hosts as well (default ${DEFAULT_HOST_PORT})`,
    },
    {
      name: "skip",
      value: "CHECK",
      repeats: true,
      oneOf: SKIP_WORDS,
      summary: `Leave out checks; may be repeated: ${SKIP_WORDS.join(", ")}`,
    },
    {
      name: "timeout",
      value: "DURATION",
      summary: `How long pods may take to start (default ${DEFAULT_TIMEOUT})`,
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { command: "connectivity test", does: "Do the pods of this cluster reach each other?" },
    { command: "connectivity test --node worker-1 --node worker-7", does: "Test the connections of two nodes" },
    { command: "connectivity test --skip host-port -o json", does: "Without host ports, as JSON for a script" },
  ],
  async run(context, given) {
    const settings = settingsOf(given);
    const results = await withCluster(context, given, (client) => testIn(client, context, settings));
    const ok = !results.some(isFailed);
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, checks: results }, undefined, 2)}\n`);
    else context.stdout(reportText(results, stdoutPage(context)));
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

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
  context: Context,
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

async function removeNamespace(objects: ClusterObjects, namespace: string, context: Context): Promise<void> {
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
