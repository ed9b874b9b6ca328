import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { UPGRADE_POLICY } from "../../model/global-network-policy.ts";
import { quoted } from "../../quote.ts";
import { parseSelector } from "../../selector/parse.ts";
import { draftPolicy } from "../../upgrade/draft-policy/draft-policy.ts";
import { parseLogLine } from "../../upgrade/draft-policy/log-lines.ts";
import { UPGRADE_MARK } from "../../upgrade/former-names.ts";
import { formatYaml } from "../../yaml.ts";
import { type Command, EXIT_OK, UsageError } from "../main/command.ts";
import { readText } from "../manifest/sources.ts";

const MARKED = `has(${UPGRADE_MARK})`;

export const draftPolicyCommand: Command = {
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
  async run(context, given) {
    const file = given.values.get("log");
    if (file === undefined) throw new UsageError('"--log FILE" is required, or "--log -" for standard input');
    const selector = given.values.get("selector") ?? MARKED;
    if (!parseSelector(selector).ok) throw new UsageError(`--selector ${quoted(selector)} is not a selector`);
    const lines = (await readText(context, file)).split("\n");
    const packets = lines.flatMap((line) => parseLogLine(line) ?? []);
    if (packets.length === 0) {
      throw new PluginError(
        "resource-missing",
        `Cannot find any logged packet of a host in ${file === "-" ? "stdin" : quoted(file)}`,
        {
          details: `lines have the prefix "${UPGRADE_POLICY} ingress", "${UPGRADE_POLICY} egress" or "${identity.product}-packet"`,
        },
      );
    }
    const policy = draftPolicy(packets, { name: given.values.get("name") ?? "hosts", selector });
    context.stdout(
      given.values.get("output") === "json" ? `${JSON.stringify(policy, undefined, 2)}\n` : formatYaml(policy),
    );
    const { ingress = [], egress = [] } = policy.spec;
    context.stderr(
      `${packets.length} packets: ${ingress.length} ingress and ${egress.length} egress rules\n${
        given.values.has("selector")
          ? ""
          : `The upgrade removes the label ${UPGRADE_MARK}: name the hosts by other labels with --selector\n`
      }`,
    );
    return EXIT_OK;
  },
};
