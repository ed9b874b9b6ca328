/**
 * Reads fields of the `ipam` object.
 *
 * Names match in any case, and `null` or an empty string counts as absent, as in
 * the library that such configs were written for. An error names the field, its
 * value and what to write instead.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import { type Address, parseAddress, unmapAddress } from "../../ip/address.ts";
import { quoted } from "../../quote.ts";

/** An object and its path in the config. */
export interface Section {
  readonly object: JsonObject;
  readonly place: string;
}

/** A value and its path in the config. */
export interface Placed {
  readonly value: unknown;
  readonly place: string;
}

export function field({ object, place }: Section, name: string): Placed {
  const value = object[name] ?? object[spellingOf(object, name)] ?? undefined;
  return { value: value === "" ? undefined : value, place: place === "" ? name : `${place}.${name}` };
}

export function section({ value, place }: Placed): Section | undefined {
  if (value === undefined) return undefined;
  if (isJsonObject(value)) return { object: value, place };
  throw wrong({ value, place }, "it must be an object");
}

export function list({ value, place }: Placed, shape: string): readonly Placed[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw wrong({ value, place }, `it must be a list: write ${shape}`);
  return value.map((item: unknown, index) => ({ value: item, place: `${place}[${index}]` }));
}

export function text({ value, place }: Placed): string | undefined {
  if (value === undefined || typeof value === "string") return value;
  throw wrong({ value, place }, "it must be a string");
}

export function address(placed: Placed): Address | undefined {
  const written = text(placed);
  if (written === undefined) return undefined;
  const read = parseAddress(written);
  if (read === undefined) throw wrong(placed, "it must be an IP address such as 10.1.2.1");
  return unmapAddress(read);
}

export function wrong({ value, place }: Placed, wanted: string): PluginError {
  const state = value === undefined ? "is missing" : `is ${quoted(value)}`;
  return new PluginError("config-invalid", `Cannot use the network config: "${place}" ${state}: ${wanted}`);
}

function spellingOf(object: JsonObject, name: string): string {
  return Object.keys(object).find((key) => key.toLowerCase() === name.toLowerCase()) ?? name;
}
