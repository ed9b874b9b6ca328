/**
 * The plugin's options in the network config. Pure.
 *
 * Each has its upstream meaning or is refused by name. `markMasqBit` avoids clashes
 * of packet marks; there are none, since no mark is used.
 */
import type { JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { valueInAnyCase } from "../any-case.ts";

export interface PortmapOptions {
  /**
   * Which clients are masqueraded: none; those that could not get a reply
   * otherwise (the pod itself, its neighbours on a bridge, the host's loopback);
   * or all.
   */
  readonly masquerade: "none" | "needed" | "all";
}

const LAST_MARK_BIT = 31;

export function decodeOptions(config: JsonObject): PortmapOptions {
  const snat = decodeSwitch(config, "snat", true);
  const masqAll = decodeSwitch(config, "masqAll", false);
  refuseBackend(valueInAnyCase(config, "backend"));
  checkMarkBit(valueInAnyCase(config, "markMasqBit"));
  refuseGiven(
    config,
    "externalSetMarkChain",
    "iptables chains cannot be called from nftables, and masquerading does not need one",
  );
  for (const key of ["conditionsV4", "conditionsV6"]) {
    refuseGiven(
      config,
      key,
      "host ports are looked up in a map, without conditions; set hostIP in the mapping instead",
    );
  }
  if (!snat) return { masquerade: "none" };
  return { masquerade: masqAll ? "all" : "needed" };
}

function decodeSwitch(config: JsonObject, key: string, whenAbsent: boolean): boolean {
  const value = valueInAnyCase(config, key) ?? whenAbsent;
  if (typeof value === "boolean") return value;
  throw new PluginError(
    "decode-failure",
    `Cannot read the network config: "${key}" is ${quoted(value)}, not true or false`,
  );
}

function refuseBackend(value: unknown): void {
  if (value === undefined || value === null || value === "" || value === "nftables") return;
  const kind = value === "iptables" ? "field-unsupported" : "config-invalid";
  throw new PluginError(kind, `Cannot use "backend": ${quoted(value)}: the only backend is "nftables"`);
}

function checkMarkBit(value: unknown): void {
  if (value === undefined || value === null) return;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= LAST_MARK_BIT) return;
  const state = `not a bit between 0 and ${LAST_MARK_BIT}`;
  throw new PluginError("config-invalid", `Cannot use "markMasqBit": ${quoted(value)}: ${state}`);
}

/** An empty text or list counts as absent. */
function refuseGiven(config: JsonObject, key: string, reason: string): void {
  const value = valueInAnyCase(config, key);
  if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) return;
  throw new PluginError("field-unsupported", `Cannot use "${key}": ${quoted(value)}: ${reason}`);
}
