import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { UPGRADE_POLICY } from "../../model/upgrade-policy.ts";
import { quoted } from "../../quote.ts";
import { parseSelector } from "../../selector/parse.ts";
import { draftPolicy } from "../../upgrade/draft-policy/draft-policy.ts";
import { parseLogLine } from "../../upgrade/draft-policy/log-lines.ts";
import { UPGRADE_MARK } from "../../upgrade/former-names.ts";
import { formatYaml } from "../../yaml.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Files, Terminal } from "../main/context.ts";
import { readText } from "../manifest/sources.ts";
import { MARKED } from "./options.ts";

export async function run(context: Terminal & Files, given: Given): Promise<ExitCode> {
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
}
