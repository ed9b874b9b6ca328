/**
 * The MAC address that the runtime asks for, in the places that CNI's conventions define: `MAC=` of CNI_ARGS (podman
 * --mac-address), `args.cni.mac`, and `runtimeConfig.mac` (capability "mac"). Pure.
 */
import type { CniArguments } from "../cni/arguments.ts";
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { findKey } from "../config/field.ts";
import { PluginError } from "../errors.ts";
import { formatMac, isUnicastMac, parseMac } from "../ip/mac.ts";
import { quoted } from "../quote.ts";
import { HOST_MAC } from "./wiring-plan.ts";

interface Requested {
  readonly mac: Uint8Array;
  readonly place: string;
}

/** Throws if a MAC cannot be used, or if two places ask for different ones. */
export function requestedMac(config: JsonObject, args: Pick<CniArguments, "mac">): Uint8Array | undefined {
  const inArguments = decoded(args.mac, "MAC of CNI_ARGS");
  const inConfig = decoded(valueIn(partOf(partOf(config, "args"), "cni"), "mac"), '"args.cni.mac"');
  const fromRuntime = decoded(valueIn(partOf(config, "runtimeConfig"), "mac"), '"runtimeConfig.mac"');
  return sameOf(sameOf(inArguments, inConfig), fromRuntime)?.mac;
}

function sameOf(first: Requested | undefined, second: Requested | undefined): Requested | undefined {
  if (first === undefined || second === undefined) return first ?? second;
  const [wanted, other] = [formatMac(first.mac), formatMac(second.mac)];
  if (wanted === other) return first;
  const state = `${first.place} is "${wanted}", but ${second.place} is "${other}"`;
  throw new PluginError("config-invalid", `Cannot choose a MAC address: ${state}`, { details: "request one of them" });
}

function decoded(value: unknown, place: string): Requested | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const kind = place.startsWith('"') ? "config-invalid" : "environment-invalid";
  const mac = typeof value === "string" ? parseMac(value) : undefined;
  const problem = mac === undefined ? "it is not a MAC address such as 02:42:ac:11:00:02" : macProblem(mac);
  if (mac !== undefined && problem === undefined) return { mac, place };
  throw new PluginError(kind, `Cannot use ${place} ${quoted(value)}: ${problem}`);
}

/** Why an interface cannot have this MAC; `undefined` if it can. */
export function macProblem(mac: Uint8Array): string | undefined {
  const text = formatMac(mac);
  if (text === "00:00:00:00:00:00") return "it is not the address of an interface";
  if (!isUnicastMac(mac)) return "it is a group address; the last bit of its first byte must be 0";
  if (text === formatMac(HOST_MAC)) return "the host's end of every link has it";
  return undefined;
}

function partOf(object: JsonObject, name: string): JsonObject {
  const part = valueIn(object, name);
  return isJsonObject(part) ? part : {};
}

/** In any case, as the rest of the config. */
function valueIn(object: JsonObject, name: string): unknown {
  return object[findKey(object, name) ?? name];
}
