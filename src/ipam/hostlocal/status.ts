/**
 * STATUS: whether ADD can work.
 *
 * Ranges without a free address are not reported: a host full of running containers
 * is healthy, and if the runtime reported it as not ready, they would be evicted.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { type AddressInput, decodeHostLocal } from "./config.ts";

export async function hostLocalStatus(input: Omit<AddressInput, "args">): Promise<void> {
  const { directory, resolvConf } = decodeHostLocal({ ...input, args: "" });
  const { accessSync, constants, existsSync } = await import("node:fs");
  let existing = directory;
  while (existing.includes("/") && !existsSync(existing)) existing = existing.slice(0, existing.lastIndexOf("/"));
  const needs = [
    { path: existing === "" ? "/" : existing, mode: constants.W_OK | constants.X_OK, problem: "cannot be written" },
    ...(resolvConf === undefined ? [] : [{ path: resolvConf, mode: constants.R_OK, problem: "cannot be read" }]),
  ];
  for (const { path, mode, problem } of needs) {
    try {
      accessSync(path, mode);
    } catch (cause) {
      const details = cause instanceof Error ? cause.message : String(cause);
      throw new PluginError("not-available", `Cannot assign addresses: ${quoted(path)} ${problem}`, {
        details,
        cause,
      });
    }
  }
}
