/**
 * The plugin's options in the network config. Pure.
 *
 * Each does what it means upstream or is refused by name. What a user wants with
 * `markMasqBit` (no clash of packet marks) holds anyway: no mark is used at all.
 */
import type { JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import { valueInAnyCase } from "../any-case.ts";

export interface PortmapOptions {
  /**
   * Whose source address is hidden behind the host's: nobody's; of those that
   * could not get an answer otherwise (the pod itself, its neighbours on a
   * bridge, the host's loopback); or everybody's.
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
    "chains of iptables cannot be called from nftables; masquerading needs none",
  );
  for (const key of ["conditionsV4", "conditionsV6"]) {
    refuseGiven(config, key, "host ports are found in a map, without conditions; name a hostIP in the mapping instead");
  }
  if (!snat) return { masquerade: "none" };
  return { masquerade: masqAll ? "all" : "needed" };
}

function decodeSwitch(config: JsonObject, key: string, whenAbsent: boolean): boolean {
  const value = valueInAnyCase(config, key) ?? whenAbsent;
  if (typeof value === "boolean") return value;
  throw new PluginError(
    "decode-failure",
    `Cannot read the network config: "${key}" is ${JSON.stringify(value)}, not true or false`,
  );
}

function refuseBackend(value: unknown): void {
  if (value === undefined || value === null || value === "" || value === "nftables") return;
  const kind = value === "iptables" ? "field-unsupported" : "config-invalid";
  throw new PluginError(kind, `Cannot use "backend": ${JSON.stringify(value)}: this plugin has one, "nftables"`);
}

function checkMarkBit(value: unknown): void {
  if (value === undefined || value === null) return;
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= LAST_MARK_BIT) return;
  const state = `not a bit between 0 and ${LAST_MARK_BIT}`;
  throw new PluginError("config-invalid", `Cannot use "markMasqBit": ${JSON.stringify(value)}: ${state}`);
}

/** An empty text or list asks for nothing. */
function refuseGiven(config: JsonObject, key: string, reason: string): void {
  const value = valueInAnyCase(config, key);
  if (value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0)) return;
  throw new PluginError("field-unsupported", `Cannot use "${key}": ${JSON.stringify(value)}: ${reason}`);
}
