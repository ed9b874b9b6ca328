/**
 * STATUS: whether an ADD could be served.
 *
 * Ranges that are full are not reported: a host full of running containers is
 * healthy, and a runtime that called it not ready would have them evicted.
 */
import { PluginError } from "../../errors.ts";
import { type AddressInput, decodeHostLocal } from "./config.ts";

export async function hostLocalStatus(input: Omit<AddressInput, "args">): Promise<void> {
  const { directory, resolvConf } = decodeHostLocal({ ...input, args: "" });
  const { accessSync, constants, existsSync } = await import("node:fs");
  let existing = directory;
  while (existing.includes("/") && !existsSync(existing)) existing = existing.slice(0, existing.lastIndexOf("/"));
  const needs = [
    { path: existing === "" ? "/" : existing, mode: constants.W_OK | constants.X_OK, use: "reservations are written" },
    ...(resolvConf === undefined
      ? []
      : [{ path: resolvConf, mode: constants.R_OK, use: "the DNS settings come from" }]),
  ];
  for (const { path, mode, use } of needs) {
    try {
      accessSync(path, mode);
    } catch (cause) {
      const details = cause instanceof Error ? cause.message : String(cause);
      throw new PluginError("not-available", `Cannot serve containers: "${path}", where ${use}, cannot be used`, {
        details,
        cause,
      });
    }
  }
}
