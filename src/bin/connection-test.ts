/** `-t`: reads a network config from stdin and tries its datastore; says nothing, or one CNI error. */
import { type Answer, errorAnswer, SILENT_SUCCESS } from "../cni/answer.ts";
import { parseJsonObject } from "../cni/json.ts";
import { NEWEST_VERSION } from "../cni/version.ts";
import { testConnection } from "../plugin/connection-test.ts";
import { pluginSurroundings } from "./plugin.ts";
import { ownProcess } from "./process.ts";
import { forgetProxies } from "./proxies.ts";

export async function connectionTest(): Promise<Answer> {
  forgetProxies();
  try {
    const config = parseJsonObject(await Bun.stdin.bytes(), "the network config");
    await testConnection(config, await pluginSurroundings(ownProcess()));
    return SILENT_SUCCESS;
  } catch (failure) {
    return errorAnswer(failure, NEWEST_VERSION);
  }
}
