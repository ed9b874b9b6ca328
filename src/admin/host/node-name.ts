/** The name of the node that the admin tool runs on: the one that the plugins use. */

import { readNodeName } from "../../config/config-files.ts";
import { findInstalledNetwork } from "../../config/installed-network.ts";
import { isNodeName } from "../../model/node-name.ts";
import { quoted } from "../../quote.ts";
import { type Given, UsageError } from "../main/command.ts";
import type { Call, Files, Host } from "../main/context.ts";

export async function nameOfNode(context: Call & Files & Host, given: Given): Promise<string> {
  const named = given.values.get("name");
  if (named === undefined) {
    const installed = await findInstalledNetwork(context);
    return readNodeName(installed?.decoded.config ?? NOTHING_CONFIGURED, () => context.hostName());
  }
  if (named !== "" && isNodeName(named)) return named;
  throw new UsageError(`"--name" is ${quoted(named)}: not a valid node name`);
}

/** For a report, which must not fail because a file is missing. */
export async function nodeOrHostName(context: Call & Files & Host, given: Given): Promise<string> {
  return nameOfNode(context, given).catch(async () => (await context.hostName()).toLowerCase());
}

const NOTHING_CONFIGURED = { node: { name: undefined, nameFile: undefined, nameFileOptional: true } };
