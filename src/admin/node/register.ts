import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { findInstalledNetwork, type InstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { NODE } from "../../model/kinds.ts";
import type { OrchestratorSide } from "../../upkeep/orchestrator-name.ts";
import { registerHost } from "../../upkeep/register.ts";
import { withNewDatastore } from "../datastore/open.ts";
import { nameOfNode } from "../host/node-name.ts";
import type { ExitCode, Given } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Files, Host } from "../main/context.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { explained } from "../resources/unreadable-remedy.ts";

type Means = DatastoreAccess & Host & Clock;

export async function run(context: Means, given: Given): Promise<ExitCode> {
  const orchestrator = orchestratorOf(await findNetwork(context, given));
  const name = await nameOfNode(context, given);
  const whenTaken = given.switches.has("force") ? "replace" : "refuse";
  return withNewDatastore(context, given, (store, { kind }) =>
    forEachResource(context, given, {
      all: [{ kind: NODE, name: { name } }],
      act: () =>
        registerHost(store, { name, kind, orchestrator, whenTaken }, withWarnings(context)).catch(
          (failure: unknown) => {
            throw explained(NODE.key({ name }), failure);
          },
        ),
    }),
  );
}

/** For the first network of containers on a host. What is registered stays as it is. */
export async function registerIfMissing(
  store: Datastore,
  kind: DatastoreSettings["kind"],
  context: Means,
): Promise<void> {
  const name = await nameOfNode(context, WITHOUT_OPTIONS);
  const { answers } = await store.read([{ kind: "key", key: NODE.key({ name }) }]);
  if (answers.flat().length > 0) return;
  await registerHost(store, { name, kind, orchestrator: undefined, whenTaken: "refuse" }, withWarnings(context));
}

const WITHOUT_OPTIONS: Given = { operands: [], switches: new Set(), values: new Map(), lists: new Map() };

function withWarnings(context: Means) {
  return { ...context, warn: (message: string) => context.stderr(`Warning: ${message}\n`) };
}

/** An unusable config does not matter to a host that is registered under a given name. */
async function findNetwork(context: Call & Files, given: Given): Promise<InstalledNetwork | undefined> {
  try {
    return await findInstalledNetwork(context);
  } catch (failure) {
    if (!given.values.has("name") || !(failure instanceof PluginError)) throw failure;
    return undefined;
  }
}

function orchestratorOf(installed: InstalledNetwork | undefined): OrchestratorSide | undefined {
  const config = installed?.decoded.config;
  const access = config && kubeAccess(config);
  return access && { access, nodeName: config?.kubernetes.nodeName };
}
