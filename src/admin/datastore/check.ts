import { unreadableFiles } from "../../config/config-files.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { counted } from "../../counted.ts";
import type { Datastore, Wanted } from "../../datastore/datastore.ts";
import { EtcdFailure } from "../../datastore/etcd/failure.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { WANTED_CLUSTER } from "../../ipam/cluster.ts";
import { clusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import { redact } from "../../redaction.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, DatastoreAccess, Terminal } from "../main/context.ts";
import { readOrExplain } from "../resources/unreadable-remedy.ts";
import { paint } from "../terminal/paint.ts";
import type { DatastoreChoice } from "./choice.ts";
import { choiceOf, explainDefault, requireFile } from "./open.ts";

/** One stage of connecting to the datastore, and its outcome. */
interface Stage {
  readonly stage: string;
  readonly ok: boolean;
  readonly message: string;
}

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const stages: Stage[] = [];
  for await (const stage of tryStages(context, given)) stages.push(stage);
  const ok = stages.every((stage) => stage.ok);
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ ok, stages }, undefined, 2)}\n`);
  else print(stages, context);
  return ok ? EXIT_OK : EXIT_FAILED;
}

/** Each stage depends on those before it: the check stops at the first that fails. */
async function* tryStages(context: DatastoreAccess, given: Given): AsyncGenerator<Stage> {
  let stage = "settings";
  let store: Datastore | undefined;
  let choice: DatastoreChoice | undefined;
  try {
    choice = await choiceOf(context, given);
    context.datastoreNotice?.print();
    const { settings, files } = choice;
    yield { stage, ok: true, message: describe(settings) };
    stage = "files";
    const problems = await unreadableFiles(files);
    if (problems.length > 0) throw new PluginError("config-invalid", problems.map(({ message }) => message).join("; "));
    if (files.length > 0)
      yield { stage, ok: true, message: `${counted(files.length, "file is", "files are")} readable` };
    stage = settings.kind === "etcd" && settings.source.kind === "discovery" ? "resolve" : "open";
    await requireFile(settings, context);
    store = await context.openDatastore(settings);
    stage = "read";
    const answer = await store.read([WANTED_CLUSTER, ANY_POOL]);
    yield {
      stage,
      ok: true,
      message: answer.revision === "0" ? "readable" : `readable, at revision ${answer.revision}`,
    };
    stage = "ready";
    const entry = answer.answers[0]?.[0];
    yield readiness(entry && readOrExplain(entry, ({ value, key }) => clusterInformation.read(value, key)));
  } catch (failure) {
    context.signal.throwIfAborted();
    const explained = choice === undefined ? failure : explainDefault(failure, choice);
    yield { stage: stageOf(failure) ?? stage, ok: false, message: redact(describeFailure(explained)) };
  } finally {
    await store?.close();
  }
}

/** The orchestrator's API fails to list a kind that it does not know, whereas a single object is just missing. */
const ANY_POOL: Wanted = { kind: "prefix", prefix: resourcesPrefix("ippools"), limit: 1 };

function readiness(found: ReturnType<typeof clusterInformation.read> | undefined): Stage {
  if (!found) {
    return {
      stage: "ready",
      ok: false,
      message: `not initialized; run "${identity.adminTool} datastore init"`,
    };
  }
  if (found.spec.datastoreReady === false) {
    const message =
      "it is locked (its ClusterInformation says that it is not ready): an upgrade or a migration is in progress";
    return { stage: "ready", ok: false, message };
  }
  const version = clusterVersion(found) ?? "unknown";
  return { stage: "ready", ok: true, message: `cluster ${found.spec.clusterGUID ?? "?"}, version ${version}` };
}

/** The stage of the etcd connection that failed. */
function stageOf(failure: unknown): string | undefined {
  const cause = failure instanceof PluginError ? failure.cause : undefined;
  return cause instanceof EtcdFailure ? cause.diagnosis.stage : undefined;
}

function describe(settings: DatastoreSettings): string {
  switch (settings.kind) {
    case "embedded":
      return `embedded, in file ${settings.path}`;
    case "orchestrator":
      return "the Kubernetes API";
    case "etcd":
      return settings.source.kind === "endpoints"
        ? `etcd at ${redact(settings.source.endpoints.join(", "))}`
        : `etcd, discovered from the SRV records of ${settings.source.domain}`;
  }
}

function print(stages: readonly Stage[], context: Call & Terminal): void {
  const { green, red } = paint(context);
  for (const { stage, ok, message } of stages) {
    context.stdout(`${ok ? green("ok    ") : red("failed")} ${stage.padEnd(12)} ${message}\n`);
  }
}
