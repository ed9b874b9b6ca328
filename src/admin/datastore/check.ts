import { unreadableFiles } from "../../config/config-files.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { EtcdFailure } from "../../datastore/etcd/failure.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { clusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import { resourceKey } from "../../model/keys.ts";
import { redact } from "../../redaction.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type Given, wantsJson } from "../command.ts";
import { failureText } from "../failure-text.ts";
import { paint } from "../paint.ts";
import { readOrExplain } from "../resources/way-out.ts";
import { choiceOf, requireFile } from "./open.ts";

/** A stage of the way to a datastore that can be used, and how it went. */
interface Stage {
  readonly stage: string;
  readonly ok: boolean;
  readonly message: string;
}

export const datastoreCheck: Command = {
  kind: "command",
  name: "check",
  summary: "Try to use the datastore, and name the stage that fails",
  description: [
    "The stages: settings, files, then of etcd resolve, connect, TLS, authenticate and request (of others: open and read),",
    "and last whether the datastore was made ready. The exit code is 1 when a stage fails.",
  ].join("\n"),
  needsDatastore: true,
  examples: [
    { command: "datastore check", does: "Where does it fail?" },
    { command: "datastore check --etcd-endpoints https://10.0.0.1:2379 -o json", does: "For a script" },
  ],
  async run(context, given) {
    const stages: Stage[] = [];
    for await (const stage of tryStages(context, given)) stages.push(stage);
    const ok = stages.every((stage) => stage.ok);
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, stages }, undefined, 2)}\n`);
    else print(stages, context);
    return ok ? EXIT_OK : EXIT_FAILED;
  },
};

/** Each stage needs those before it: the first that fails is the last. */
async function* tryStages(context: Context, given: Given): AsyncGenerator<Stage> {
  let stage = "settings";
  let store: Datastore | undefined;
  try {
    const { settings, files } = await choiceOf(context, given);
    yield { stage, ok: true, message: describe(settings) };
    stage = "files";
    const problems = await unreadableFiles(files);
    if (problems.length > 0) throw new PluginError("config-invalid", problems.map(({ message }) => message).join("; "));
    if (files.length > 0) yield { stage, ok: true, message: `${files.length} can be read` };
    stage = settings.kind === "etcd" && settings.source.kind === "discovery" ? "resolve" : "open";
    requireFile(settings);
    store = await context.openDatastore(settings);
    stage = "read";
    const answer = await store.read([{ kind: "key", key: CLUSTER_KEY }]);
    yield { stage, ok: true, message: `answers, at revision ${answer.revision}` };
    stage = "ready";
    const entry = answer.answers[0]?.[0];
    yield readiness(entry && readOrExplain(entry, ({ value, key }) => clusterInformation.read(value, key)));
  } catch (failure) {
    context.signal.throwIfAborted();
    yield { stage: stageOf(failure) ?? stage, ok: false, message: redact(failureText(failure)) };
  } finally {
    await store?.close();
  }
}

const CLUSTER_KEY = resourceKey("clusterinformations", { name: "default" });

function readiness(found: ReturnType<typeof clusterInformation.read> | undefined): Stage {
  if (!found) {
    return {
      stage: "ready",
      ok: false,
      message: `it is bare: make it ready with "${identity.adminTool} datastore init"`,
    };
  }
  if (found.spec.datastoreReady === false) {
    const message = "its ClusterInformation says that it is not ready: an upgrade or a migration may be under way";
    return { stage: "ready", ok: false, message };
  }
  const version = clusterVersion(found) ?? "unknown";
  return { stage: "ready", ok: true, message: `cluster ${found.spec.clusterGUID ?? "?"}, version ${version}` };
}

/** Which part of etcd's way failed. */
function stageOf(failure: unknown): string | undefined {
  const cause = failure instanceof PluginError ? failure.cause : undefined;
  return cause instanceof EtcdFailure ? cause.diagnosis.stage : undefined;
}

function describe(settings: DatastoreSettings): string {
  switch (settings.kind) {
    case "embedded":
      return `embedded, in ${settings.path}`;
    case "orchestrator":
      return "the orchestrator's API";
    case "etcd":
      return settings.source.kind === "endpoints"
        ? `etcd at ${redact(settings.source.endpoints.join(", "))}`
        : `etcd, as the SRV records of ${settings.source.domain} say`;
  }
}

function print(stages: readonly Stage[], context: Context): void {
  const { green, red } = paint(context);
  for (const { stage, ok, message } of stages) {
    context.stdout(`${ok ? green("ok    ") : red("failed")} ${stage.padEnd(12)} ${message}\n`);
  }
}
