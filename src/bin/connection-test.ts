/** `-t`: reads a network config from stdin and tries its datastore; says nothing, or one CNI error. */

import { parseJsonObject } from "../cni/json.ts";
import { errorReply, type Reply, SILENT_SUCCESS } from "../cni/reply.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { testConnection } from "../plugin/connection-test.ts";
import { pluginSurroundings } from "./plugin.ts";
import { ownProcess } from "./process.ts";
import { removeUntrustedVariables } from "./trusted-environment.ts";

export async function connectionTest(): Promise<Reply> {
  removeUntrustedVariables();
  try {
    const config = parseJsonObject(await Bun.stdin.bytes(), "the network config");
    await testConnection(config, await pluginSurroundings(ownProcess()));
    return SILENT_SUCCESS;
  } catch (failure) {
    return errorReply(failure, NEWEST_VERSION);
  }
}
