import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import { UPGRADE_POLICY } from "../../model/upgrade-policy.ts";
import { CLUSTER_OPTIONS } from "../cluster/options.ts";
import type { Command, CommandGroup } from "../main/command.ts";
import { CONTEXT_OPTION, DEFAULT_PLAN_FILE, DETECTION_OPTIONS, HELM_OPTION, MARKED, PLAN_OPTIONS } from "./options.ts";

const upgradeDetect: Command = {
  kind: "command",
  name: "detect",
  summary: "Find out what is installed, and what of it an upgrade has to take care of",
  description: [
    "Shows how the network was installed, its datastore, the release of every part, upgrades that have not ended, and what an upgrade has",
    "to take care of. Nothing is guessed: if the cluster does not show something, or shows two things, the option that decides it is named,",
    "and the exit code is 1. Reads only.",
  ].join("\n"),
  options: [...DETECTION_OPTIONS, CONTEXT_OPTION],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade detect", does: "What is installed here, and can it be upgraded?" },
    { command: "upgrade detect -o json", does: "The same for a script" },
    { command: "upgrade detect --from-version v3.26.1", does: "Say which release it is, if images have digests" },
  ],
  load: loadOnce(() => import("./detect.ts")),
};

const upgradePlan: Command = {
  kind: "command",
  name: "plan",
  summary: "Plan the upgrade, show what it will do, and save the plan",
  description: [
    "Reads only. Shows each step with its reason, its changes as the server itself would make them (a dry run), the fields that it takes",
    "from others, what cannot be undone and how long it takes. The plan is saved to a file, which apply carries out as long as the",
    "cluster is as it was. The exit code is 1 if something has to be decided first.",
  ].join("\n"),
  options: [
    { name: "plan", value: "FILE", summary: `File to save the plan to (default ${DEFAULT_PLAN_FILE})` },
    { name: "full", summary: "Show every line of every change" },
    ...PLAN_OPTIONS,
    ...DETECTION_OPTIONS,
    CONTEXT_OPTION,
  ],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade plan", does: `What would an upgrade of ${identity.title} do?` },
    { command: "upgrade plan --full --plan upgrade.json", does: "Show everything, and save it to another file" },
  ],
  load: loadOnce(() => import("./plan.ts")),
};

const upgradeApply: Command = {
  kind: "command",
  name: "apply",
  summary: "Carry out the plan, or continue where it was interrupted",
  description: [
    "Refuses if the cluster has changed since the plan was made, or if another upgrade runs. Backs up everything that the plan changes",
    "before the first write. After each step it checks the result, and stops at the first one that is wrong. It may be interrupted",
    "or killed at any moment: the same command continues. Progress is recorded in the cluster; see upgrade status.",
  ].join("\n"),
  options: [
    { name: "plan", value: "FILE", summary: `File of the plan (default ${DEFAULT_PLAN_FILE})` },
    HELM_OPTION,
    CONTEXT_OPTION,
  ],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade apply", does: "Carry out the plan that was made last, or continue" },
    { command: "upgrade apply --plan upgrade.json -o json", does: "Carry out this plan, and print each event as JSON" },
  ],
  load: loadOnce(() => import("./apply.ts")),
};

const upgradeVerify: Command = {
  kind: "command",
  name: "verify",
  summary: "Check that every step of the upgrade is done and right",
  description: "Reads only, and may be called at any time. The exit code is 1 if something is wrong.",
  options: [CONTEXT_OPTION],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [{ command: "upgrade verify", does: "Is the cluster as the upgrade left it?" }],
  load: loadOnce(() => import("./verify.ts")),
};

const upgradeRollback: Command = {
  kind: "command",
  name: "rollback",
  summary: "Undo the upgrade, as far as that is possible",
  description: [
    "Without --yes it only says what it would undo and what it cannot bring back, and the exit code is 1. With --yes it undoes the steps",
    "that were begun, the last one first. It may be interrupted or killed at any moment: the same command continues.",
  ].join("\n"),
  options: [
    { name: "yes", summary: "Do it: the limits are known" },
    { name: "plan", value: "FILE", summary: `File of the plan; copies are beside it (default ${DEFAULT_PLAN_FILE})` },
    HELM_OPTION,
    CONTEXT_OPTION,
  ],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade rollback", does: "What would be undone, and what stays?" },
    { command: "upgrade rollback --yes", does: "Undo the upgrade" },
  ],
  load: loadOnce(() => import("./rollback.ts")),
};

const upgradeStatus: Command = {
  kind: "command",
  name: "status",
  summary: "Show how far the upgrade is",
  description: "Reads the record of the upgrade in the cluster, whichever process carries it out.",
  options: [...CLUSTER_OPTIONS],
  versionCheck: "refuse",
  examples: [{ command: "upgrade status", does: "Which steps are done?" }],
  load: loadOnce(() => import("./status.ts")),
};

const draftPolicyCommand: Command = {
  kind: "command",
  name: "draft-policy",
  summary: `Draft a policy from the log lines of ${UPGRADE_POLICY}`,
  description: [
    `Reads the kernel's log of hosts whose traffic the temporary policy ${UPGRADE_POLICY} has logged and allowed, and prints a`,
    "GlobalNetworkPolicy that allows the same: peers, protocols and ports, each once. Nothing in the cluster is changed. Review it,",
    `since it allows what was there, wanted or not; apply it before the upgrade deletes ${UPGRADE_POLICY}.`,
  ].join("\n"),
  options: [
    { name: "log", value: "FILE", summary: "File with lines of the kernel's log, or - for standard input" },
    { name: "name", value: "NAME", summary: "Name of the policy (default: hosts)" },
    {
      name: "selector",
      value: "SELECTOR",
      summary: `Host endpoints that it applies to (default: ${MARKED}, a label that the upgrade removes)`,
    },
    { name: "output", letter: "o", value: "FORMAT", oneOf: ["yaml", "json"], summary: "yaml (default) or json" },
  ],
  versionCheck: "refuse",
  examples: [
    { command: "upgrade draft-policy --log /var/log/kern.log --selector \"role == 'edge'\"", does: "From a log file" },
    { command: "upgrade draft-policy --log - < packets.log", does: "From standard input" },
  ],
  load: loadOnce(() => import("./draft-policy.ts")),
};

export const UPGRADE_COMMANDS: CommandGroup = {
  kind: "group",
  name: "upgrade",
  summary: `Upgrade ${identity.title} in the cluster to the release of this tool`,
  commands: [
    upgradeDetect,
    upgradePlan,
    upgradeApply,
    upgradeVerify,
    upgradeStatus,
    upgradeRollback,
    draftPolicyCommand,
  ],
};
