import { identity } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { detectFacts } from "../../upgrade/detect/detect.ts";
import type { Detection } from "../../upgrade/detect/detection.ts";
import { methodText } from "../../upgrade/plan-text.ts";
import { CLUSTER_OPTIONS, withCluster } from "../cluster/access.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../command.ts";
import { DETECTION_OPTIONS, detectionRequest } from "./options.ts";

export const upgradeDetect: Command = {
  kind: "command",
  name: "detect",
  summary: "Find out what is installed, and what of it an upgrade has to take care of",
  description: [
    "Reads only. Where the cluster is ambiguous it says so and names the option that decides; it does not guess. The exit code is 1 if",
    "nothing can be planned.",
  ].join("\n"),
  options: [...DETECTION_OPTIONS, ...CLUSTER_OPTIONS],
  examples: [
    { command: "upgrade detect", does: `Which ${identity.title} is in this cluster, and how was it installed?` },
    { command: "upgrade detect -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const detection = await withCluster(context, given, (client) =>
      detectFacts(clusterObjects(client, context.signal), detectionRequest(given, context.version)),
    );
    context.stdout(wantsJson(given) ? `${JSON.stringify(detection, undefined, 2)}\n` : detectionText(detection));
    return detection.kind === "found" ? EXIT_OK : EXIT_FAILED;
  },
};

function detectionText(detection: Detection): string {
  const facts = detection.kind === "found" ? detection.facts : detection.partial;
  const { method, datastore, version, target, parts = [], nodes = [], orchestratorVersion } = facts;
  const rows: readonly (readonly [string, string | undefined])[] = [
    ["Installed", method && datastore && methodText({ method, datastore })],
    ["Version", version === undefined ? undefined : `${version}, this tool upgrades to ${target}`],
    ["Orchestrator", orchestratorVersion],
    ["Nodes", String(nodes.length)],
    ...parts.map((part) => ["Part", `${part.part}: ${part.version ?? "version unknown"}`] as const),
    ...(facts.unfinished ?? []).map((line) => ["Unfinished", line] as const),
    ["Application layer policy", facts.hasApplicationLayerPolicy ? "in use" : undefined],
    ["Upgrade policy", facts.hasUpgradePolicy ? "allow-all-upgrade is in place" : undefined],
    ...(facts.hostEndpoints ?? []).map((name) => ["Host endpoint", name] as const),
    ...(facts.ownedObjects ?? []).map((name) => ["Owner reference to be lost", name] as const),
  ];
  const width = Math.max(...rows.map(([name]) => name.length)) + 2;
  const lines = rows.flatMap(([name, text]) => (text === undefined ? [] : [`${`${name}:`.padEnd(width)} ${text}`]));
  const obstacles = detection.kind === "found" ? [] : detection.obstacles;
  return [
    ...lines,
    ...obstacles.flatMap(({ message, remedy }) => [`Cannot plan an upgrade: ${message}`, `  ${remedy}`]),
    "",
  ].join("\n");
}
