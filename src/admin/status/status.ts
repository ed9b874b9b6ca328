import { identity } from "../../identity.ts";
import { clusterObjects } from "../../kube/objects.ts";
import { formatYaml } from "../../yaml.ts";
import { withCluster } from "../cluster/access.ts";
import { type Command, EXIT_FAILED, EXIT_OK } from "../command.ts";
import { stdoutPage } from "../page.ts";
import { datastoreOfCluster } from "./datastore-of-cluster.ts";
import { findingsOf, isFailure } from "./findings.ts";
import { readStatusFacts } from "./read-facts.ts";
import { statusJson, statusText } from "./report.ts";

export const statusCommand: Command = {
  kind: "command",
  name: "status",
  summary: "Show how the installed network of the cluster is doing",
  description: [
    "Shows the components, the nodes with their agents, the pools with their usage, and the releases; then everything that is wrong and",
    "what to do about it. Works for an Installation of the operator and for manifests. The exit code is 1 if something is wrong;",
    "warnings alone do not count. The datastore is the one of the installed network, unless options name another.",
  ].join("\n"),
  options: [
    {
      name: "output",
      letter: "o",
      value: "FORMAT",
      oneOf: ["text", "json", "yaml"],
      summary: "Output format: text (default), json or yaml",
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "status", does: `Is ${identity.title} doing well in this cluster?` },
    { command: "status -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const facts = await withCluster(context, given, async (client) => {
      const objects = clusterObjects(client, context.signal);
      const datastore = await datastoreOfCluster(objects, context, given);
      return readStatusFacts(objects, context.version, datastore);
    });
    const findings = findingsOf(facts);
    const format = given.values.get("output") ?? "text";
    if (format === "text") context.stdout(statusText(facts, findings, stdoutPage(context)));
    else {
      const report = statusJson(facts, findings);
      context.stdout(format === "json" ? `${JSON.stringify(report, undefined, 2)}\n` : formatYaml(report));
    }
    return findings.some(isFailure) ? EXIT_FAILED : EXIT_OK;
  },
};
