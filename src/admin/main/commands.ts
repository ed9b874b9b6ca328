/** Every command of the admin tool: one row each. */

import { ALP_COMMANDS } from "../../alp/command/commands.ts";
import { identity } from "../../identity.ts";
import { diffCommand } from "../apply/diff.ts";
import { validateCommand } from "../apply/validate.ts";
import { applyCommand, createCommand, replaceCommand } from "../apply/write-commands.ts";
import { bgpRoutes } from "../bgp/routes.ts";
import { completionCommand } from "../completion/commands.ts";
import { completionNames } from "../completion/names.ts";
import { configCheck } from "../config/check.ts";
import { connectivityProbe } from "../connectivity/probe-command.ts";
import { connectivityServe } from "../connectivity/serve.ts";
import { connectivityTest } from "../connectivity/test-command.ts";
import { convertCommand } from "../convert/convert.ts";
import { datastoreAdoptCluster } from "../datastore/adopt-cluster.ts";
import { datastoreCheck } from "../datastore/check.ts";
import { datastoreInit } from "../datastore/init.ts";
import { MIGRATE_COMMANDS } from "../datastore/migrate/group.ts";
import { deleteCommand } from "../delete/delete.ts";
import { clusterDiags } from "../diags/cluster-diags.ts";
import { nodeDiags } from "../diags/node-diags.ts";
import { annotateCommand } from "../edit/annotate.ts";
import { editCommand } from "../edit/edit.ts";
import { labelCommand } from "../edit/label.ts";
import { patchCommand } from "../edit/patch.ts";
import { explainCommand } from "../explain/explain.ts";
import { apiResourcesCommand } from "../get/api-resources.ts";
import { describeCommand } from "../get/describe.ts";
import { getCommand } from "../get/get.ts";
import { installCommand } from "../install/install.ts";
import { uninstallCommand } from "../install/uninstall.ts";
import { ipamCheck } from "../ipam/check/check.ts";
import { ipamConfigure } from "../ipam/configure.ts";
import { ipamExplain } from "../ipam/explain/explain.ts";
import { ipamGc } from "../ipam/gc/gc.ts";
import { ipamRelease } from "../ipam/release/release.ts";
import { ipamShow } from "../ipam/show/show.ts";
import { ipamSplit } from "../ipam/split/split.ts";
import { nodeCheck } from "../node/check.ts";
import { nodeChecksystem } from "../node/checksystem.ts";
import { nodeRegister } from "../node/register.ts";
import { nodeRestore } from "../node/restore.ts";
import { nodeRun } from "../node/run-refusal.ts";
import { nodeStatus } from "../node/status.ts";
import { policyCounters } from "../policy/counters.ts";
import { policyExplain } from "../policy/explain/explain.ts";
import { policyTrace } from "../policy/trace/trace.ts";
import { statusCommand } from "../status/status.ts";
import { UPGRADE_COMMANDS } from "../upgrade/group.ts";
import { versionCommand } from "../version/version.ts";
import type { CommandGroup } from "./command.ts";
import { optionsCommand } from "./help.ts";

export const COMMANDS: CommandGroup = {
  kind: "group",
  name: identity.adminTool,
  summary: `${identity.adminTool} manages ${identity.title} networks`,
  commands: [
    installCommand,
    statusCommand,
    uninstallCommand,
    UPGRADE_COMMANDS,
    getCommand,
    describeCommand,
    explainCommand,
    apiResourcesCommand,
    applyCommand,
    createCommand,
    replaceCommand,
    validateCommand,
    convertCommand,
    diffCommand,
    editCommand,
    patchCommand,
    labelCommand,
    annotateCommand,
    deleteCommand,
    {
      kind: "group",
      name: "datastore",
      summary: "Check, initialize and migrate the datastore",
      commands: [datastoreCheck, datastoreInit, datastoreAdoptCluster, MIGRATE_COMMANDS],
    },
    {
      kind: "group",
      name: "ipam",
      summary: "Manage IP address allocation",
      commands: [ipamShow, ipamExplain, ipamCheck, ipamGc, ipamRelease, ipamSplit, ipamConfigure],
    },
    {
      kind: "group",
      name: "policy",
      summary: "Explain and watch what network policy does with connections",
      commands: [policyExplain, policyTrace, policyCounters],
    },
    ALP_COMMANDS,
    {
      kind: "group",
      name: "node",
      summary: "Manage this host as a node of the network",
      commands: [nodeStatus, nodeRegister, nodeCheck, nodeChecksystem, nodeDiags, nodeRestore, nodeRun],
    },
    {
      kind: "group",
      name: "cluster",
      summary: "Analyse a whole cluster",
      commands: [clusterDiags],
    },
    {
      kind: "group",
      name: "bgp",
      summary: "Show what BGP does on this node",
      commands: [bgpRoutes],
    },
    {
      kind: "group",
      name: "connectivity",
      summary: "Test the connections of pods",
      commands: [connectivityTest, connectivityServe, connectivityProbe],
    },
    {
      kind: "group",
      name: "config",
      summary: "Check CNI network configuration files",
      commands: [configCheck],
    },
    optionsCommand,
    completionCommand(() => COMMANDS),
    completionNames(() => COMMANDS),
    versionCommand,
  ],
};
