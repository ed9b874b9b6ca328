import { findInstalledNetwork, type InstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
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

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const orchestrator = orchestratorOf(await findNetwork(context, given));
  const name = await nameOfNode(context, given);
  const whenTaken = given.switches.has("force") ? "replace" : "refuse";
  const means = { ...context, warn: (message: string) => context.stderr(`Warning: ${message}\n`) };
  return withNewDatastore(context, given, (store, { kind }) =>
    forEachResource(context, given, {
      all: [{ kind: NODE, name: { name } }],
      act: () =>
        registerHost(store, { name, kind, orchestrator, whenTaken }, means).catch((failure: unknown) => {
          throw explained(NODE.key({ name }), failure);
        }),
    }),
  );
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
