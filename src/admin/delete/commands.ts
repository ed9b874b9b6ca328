import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";
import { FILE_OPTIONS } from "../manifest/options.ts";
import {
  ALL_NAMESPACES_OPTION,
  DRY_RUN_OPTION,
  KIND_WORDS,
  NAMESPACE_OPTION,
  SELECTOR_OPTION,
} from "../resources/options.ts";

export const deleteCommand: Command = {
  kind: "command",
  name: "delete",
  summary: "Delete resources",
  description: [
    "A pool with addresses in use, a node with workloads, the endpoint of a workload and a profile of endpoints are not deleted, and the",
    "error lists who uses them. With --force they are deleted: running workloads keep their addresses, those of a pool then outside all",
    "pools; endpoints without their profile have only what policies allow.",
    "Deleting a pool disables it first, then releases its blocks from their nodes, then deletes it.",
    "Deleting a node also releases its block claims. Leftover block claims of a deleted node are removed too.",
    "Its empty blocks are deleted; blocks in use stay without a node and are deleted when they are empty and have rested.",
    "With -l or --all, resources of the namespace are deleted, or of all namespaces with -A.",
    "If deleting policies, profiles, tiers, network sets, labels or host endpoints closes or opens workloads or hosts, or changes",
    "whom their rules match, stderr says which.",
    "An unreadable resource is deleted only with --force; whether an unreadable pool is in use is then not checked.",
  ].join("\n"),
  operands: "KIND NAME… | KIND/NAME… | KIND -l SELECTOR | KIND --all",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [
    ...FILE_OPTIONS,
    SELECTOR_OPTION,
    { name: "all", summary: "Delete all resources of the kind" },
    NAMESPACE_OPTION,
    ALL_NAMESPACES_OPTION,
    DRY_RUN_OPTION,
    {
      name: "force",
      summary: "Delete pools, nodes, endpoints and profiles even if they are in use, and unreadable resources",
    },
    { name: "ignore-not-found", summary: "Do not fail if a resource does not exist" },
    { name: "skip-not-exists", letter: "s", summary: "The same as --ignore-not-found" },
  ],
  needsDatastore: true,
  examples: [
    { command: "delete ippool blue", does: "Delete a pool" },
    { command: "delete -f pools.yaml --ignore-not-found", does: "Delete the resources in a file" },
    { command: "delete nodes -l rack=a --dry-run", does: "Show which nodes would be deleted" },
    { command: "delete node n1 --force", does: "Delete a node even if it is unreadable" },
  ],
  load: loadOnce(() => import("./delete.ts")),
};
