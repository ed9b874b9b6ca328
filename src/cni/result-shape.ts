/**
 * Decodes the wire shapes of a result. `null`, the empty string, and a zero without
 * meaning count as absent, as other tools write them.
 *
 * Does not use a schema: every DEL reads a result, and building the schema took
 * longer than reading it.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import { isJsonObject, type JsonObject } from "./json.ts";
import type { CniDns, CniInterface, CniIp, CniResult, CniRoute } from "./result.ts";
import type { ShapeFamily } from "./version.ts";

/** A loose check: the user of the result parses the addresses. */
const ADDRESS = /^[0-9a-fA-F.:]+$/;
const PREFIXED_ADDRESS = /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/;

/** `place` is the path of the value, for messages: "prevResult". */
export function decodeResultShape(value: unknown, shape: ShapeFamily, place: string): CniResult {
  const result = objectAt(value, place);
  return shape === "ip4-ip6" ? decodeFamilies(result, place) : decodeLists(result, place);
}

function decodeLists(result: JsonObject, place: string): CniResult {
  return {
    interfaces: listOf(result, "interfaces", place, decodeInterface),
    ips: listOf(result, "ips", place, decodeIp),
    routes: listOf(result, "routes", place, decodeRoute),
    dns: decodeDns(result, place),
  };
}

/** 0.1.0 and 0.2.0: at most one address of each family, and no interfaces. */
function decodeFamilies(result: JsonObject, place: string): CniResult {
  const families = ["ip4", "ip6"].flatMap((field) => {
    const value = result[field] ?? undefined;
    return value === undefined ? [] : [decodeFamily(value, `${place}.${field}`)];
  });
  return {
    interfaces: [],
    ips: families.map(({ ip }) => ip),
    routes: families.flatMap(({ routes }) => routes),
    dns: decodeDns(result, place),
  };
}

function decodeFamily(value: unknown, place: string): { readonly ip: CniIp; readonly routes: readonly CniRoute[] } {
  const family = objectAt(value, place);
  const ip = { address: prefixedAddress(family, "ip", place), gateway: gateway(family, "gateway", place) };
  return { ip, routes: listOf(family, "routes", place, decodeRoute) };
}

function decodeInterface(value: unknown, place: string): CniInterface {
  const link = objectAt(value, place);
  const { name } = link;
  if (typeof name !== "string") throw malformed(`${place}.name`, "a string", name);
  return {
    name,
    mac: text(link, "mac", place),
    sandbox: text(link, "sandbox", place),
    mtu: count(link, "mtu", place),
    socketPath: text(link, "socketPath", place),
    pciId: text(link, "pciID", place),
  };
}

function decodeIp(value: unknown, place: string): CniIp {
  const ip = objectAt(value, place);
  return {
    address: prefixedAddress(ip, "address", place),
    gateway: gateway(ip, "gateway", place),
    interface: integer(ip, "interface", place),
  };
}

function decodeRoute(value: unknown, place: string): CniRoute {
  const route = objectAt(value, place);
  return {
    destination: prefixedAddress(route, "dst", place),
    gateway: gateway(route, "gw", place),
    mtu: count(route, "mtu", place),
    advmss: count(route, "advmss", place),
    priority: count(route, "priority", place),
    table: integer(route, "table", place),
    scope: integer(route, "scope", place),
  };
}

function decodeDns(result: JsonObject, parent: string): CniDns {
  const place = `${parent}.dns`;
  const dns = objectAt(result["dns"] ?? {}, place);
  return {
    nameservers: listOf(dns, "nameservers", place, textItem),
    domain: text(dns, "domain", place),
    search: listOf(dns, "search", place, textItem),
    options: listOf(dns, "options", place, textItem),
  };
}

function objectAt(value: unknown, place: string): JsonObject {
  if (isJsonObject(value)) return value;
  throw malformed(place, "an object", value);
}

function listOf<Item>(
  object: JsonObject,
  field: string,
  place: string,
  decodeItem: (value: unknown, place: string) => Item,
): readonly Item[] {
  const list = object[field] ?? [];
  if (!Array.isArray(list)) throw malformed(`${place}.${field}`, "a list", list);
  return list.map((item: unknown, index) => decodeItem(item, `${place}.${field}[${index}]`));
}

function textItem(value: unknown, place: string): string {
  if (typeof value === "string") return value;
  throw malformed(place, "a string", value);
}

function text(object: JsonObject, field: string, place: string): string | undefined {
  return textItem(object[field] ?? "", `${place}.${field}`) || undefined;
}

function integer(object: JsonObject, field: string, place: string): number | undefined {
  const value = object[field] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw malformed(`${place}.${field}`, "an integer", value);
}

/** An integer for which zero means absent. */
function count(object: JsonObject, field: string, place: string): number | undefined {
  return integer(object, field, place) || undefined;
}

function prefixedAddress(object: JsonObject, field: string, place: string): string {
  const value = object[field];
  if (typeof value === "string" && PREFIXED_ADDRESS.test(value)) return value;
  throw malformed(`${place}.${field}`, "an address with a prefix length", value);
}

function gateway(object: JsonObject, field: string, place: string): string | undefined {
  const value = text(object, field, place);
  if (value === undefined || ADDRESS.test(value)) return value;
  throw malformed(`${place}.${field}`, "an address", value);
}

function malformed(place: string, wanted: string, found: unknown): PluginError {
  const state = found === undefined ? "is missing" : `is ${quoted(found)}`;
  return new PluginError("decode-failure", `Cannot read ${place}: it ${state}; it must be ${wanted}`);
}
