/** Every command of the admin tool: one row each. */

import { ALP_COMMANDS } from "../../alp/command/commands.ts";
import { consoleCommand } from "../../console/command/commands.ts";
import { identity } from "../../identity.ts";
import { applyCommand, createCommand, diffCommand, replaceCommand, validateCommand } from "../apply/commands.ts";
import { bgpRoutes } from "../bgp/commands.ts";
import { completionCommand, completionNames } from "../completion/commands.ts";
import { configCheck } from "../config/commands.ts";
import { connectivityProbe, connectivityServe, connectivityTest } from "../connectivity/commands.ts";
import { convertCommand } from "../convert/commands.ts";
import { datastoreAdoptCluster, datastoreCheck, datastoreInit } from "../datastore/commands.ts";
import { MIGRATE_COMMANDS } from "../datastore/migrate/commands.ts";
import { deleteCommand } from "../delete/commands.ts";
import { clusterDiags, nodeDiags } from "../diags/commands.ts";
import { annotateCommand, editCommand, labelCommand, patchCommand } from "../edit/commands.ts";
import { explainCommand } from "../explain/commands.ts";
import { flowsCommand } from "../flows/commands.ts";
import { apiResourcesCommand, describeCommand, getCommand } from "../get/commands.ts";
import { installCommand, uninstallCommand } from "../install/commands.ts";
import {
  ipamCheck,
  ipamConfigure,
  ipamExplain,
  ipamGc,
  ipamRelease,
  ipamReserve,
  ipamShow,
  ipamSplit,
} from "../ipam/commands.ts";
import { networkCreate, networkDelete, networkList, networkShow } from "../network/commands.ts";
import { nodeCheck, nodeChecksystem, nodeRegister, nodeRestore, nodeRun, nodeStatus } from "../node/commands.ts";
import {
  policyCounters,
  policyDraft,
  policyExplain,
  policyMatrix,
  policyPreview,
  policyPromote,
  policyTrace,
  policyUnused,
} from "../policy/commands.ts";
import { statusCommand } from "../status/commands.ts";
import { UPGRADE_COMMANDS } from "../upgrade/commands.ts";
import { versionCommand } from "../version/commands.ts";
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
      name: "network",
      summary: "Create, list and delete networks of containers on this host",
      commands: [networkCreate, networkList, networkShow, networkDelete],
    },
    {
      kind: "group",
      name: "ipam",
      summary: "Manage IP address allocation",
      commands: [ipamShow, ipamExplain, ipamCheck, ipamGc, ipamRelease, ipamReserve, ipamSplit, ipamConfigure],
    },
    {
      kind: "group",
      name: "policy",
      summary: "Explain and watch what network policy does with connections",
      commands: [
        policyExplain,
        policyPreview,
        policyMatrix,
        policyTrace,
        policyCounters,
        policyDraft,
        policyUnused,
        policyPromote,
      ],
    },
    flowsCommand,
    consoleCommand,
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
