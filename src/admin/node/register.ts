import { findInstalledNetwork, type InstalledNetwork } from "../../config/installed-network.ts";
import { kubeAccess } from "../../config/kube-access.ts";
import { PluginError } from "../../errors.ts";
import { NODE } from "../../model/kinds.ts";
import type { OrchestratorSide } from "../../upkeep/orchestrator-name.ts";
import { registerHost } from "../../upkeep/register.ts";
import { withNewDatastore } from "../datastore/open.ts";
import { nameOfNode } from "../host/node-name.ts";
import type { Command, Context, Given } from "../main/command.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { explained } from "../resources/unreadable-remedy.ts";

export const nodeRegister: Command = {
  kind: "command",
  name: "register",
  summary: "Create or update the Node resource of this host",
  description: [
    "The name is the one that the plugins use: that of the installed network config or its node name file, otherwise the",
    "host name in lower case. Its addresses are found by the methods that ipv4AddressDetection and ipv6AddressDetection of",
    "NodeAgentConfiguration name; the usual one, first-found, prefers links with a default route.",
    "Labels and other fields of an existing Node are kept.",
    "The node agent does the same for its host, at its start and every few minutes: on the Kubernetes API it checks that the Node is",
    "this machine's, and adds only its release.",
    "The identity of this machine is recorded: plugins refuse to work under a node name that another machine has registered.",
    "On etcd, the name of this host in Kubernetes is recorded, if the network config gives access to the Kubernetes API and",
    "the API has a Node of that name: labels are then copied from it, and this Node is deleted with it (see docs/controllers.md).",
    "The agent does not create the Node while that API cannot be reached or has no such Node, for example because it was deleted:",
    "without the name, nobody would delete it.",
  ].join("\n"),
  options: [
    { name: "name", value: "NAME", summary: "Register under this name" },
    { name: "force", summary: "Replace the machine that has registered the name" },
  ],
  needsDatastore: true,
  versionCheck: "none",
  examples: [
    { command: "node register", does: "Register this host, so that it can be labelled and selected by pools" },
  ],
  async run(context, given) {
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
  },
};

/** An unusable config does not matter to a host that is registered under a given name. */
async function findNetwork(context: Context, given: Given): Promise<InstalledNetwork | undefined> {
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
