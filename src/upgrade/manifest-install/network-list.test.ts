import { describe, expect, test } from "bun:test";
import { INSTALLED_LOG_FILE } from "../../config/installed-network-list.ts";
import { identity } from "../../identity.ts";
import { translateNetworkList } from "./network-list.ts";

function listOf(own: object): string {
  const plugins = [{ type: identity.product, ...own }];
  return JSON.stringify({ name: "pods", cniVersion: "0.3.1", plugins });
}

function logFileAfter(live: object, base: object | undefined): unknown {
  const text = translateNetworkList({
    base: base === undefined ? undefined : listOf(base),
    live: listOf(live),
    release: listOf({ log_file_path: INSTALLED_LOG_FILE }),
    mtu: "0",
  });
  return JSON.parse(text ?? "{}").plugins[0].log_file_path;
}

describe("translateNetworkList()", () => {
  const FORMER = { log_file_path: "/var/log/former/cni.log" };

  test.each([
    ["stays off if the user had removed it", {}, FORMER, undefined],
    ["stays where the user had moved it", { log_file_path: "/own.log" }, FORMER, "/own.log"],
    ["is that of the release if the user had not changed it", FORMER, FORMER, INSTALLED_LOG_FILE],
    ["is that of the release if the earlier one had none", {}, {}, INSTALLED_LOG_FILE],
    ["is that of the release if it is not known what the earlier one had", {}, undefined, INSTALLED_LOG_FILE],
  ] as const)("the log file %s", (_, live, base, wanted) => {
    expect(logFileAfter(live, base)).toBe(wanted as never);
  });
});
