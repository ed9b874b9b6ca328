/**
 * Encodes and decodes the result in the shape of each CNI version:
 *
 *   0.1.0 0.2.0        ip4 {ip gateway routes}  ip6 {…}  dns
 *   0.3.0 0.3.1 0.4.0  interfaces  ips (with "version")  routes  dns
 *   1.0.0              the same, without ips[].version
 *   1.1.0              with mtu, socketPath, pciID of interfaces and the attributes of routes
 *
 * What a version cannot express is dropped. A result without any address is refused
 * before 0.3.0, whose shape can contain nothing else.
 */
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import type { JsonObject } from "./json.ts";
import { addressFamily, type CniDns, type CniInterface, type CniIp, type CniResult, type CniRoute } from "./result.ts";
import { decodeResultShape } from "./result-shape.ts";
import { type CniVersion, isAtLeast, isCniVersion, shapeFamilyOf } from "./version.ts";

export function encodeResult(result: CniResult, version: CniVersion): JsonObject {
  switch (shapeFamilyOf(version)) {
    case "ip4-ip6":
      return encodeFamilies(result, version);
    case "versioned-ips":
    case "plain-ips":
      return encodeLists(result, version);
  }
}

/**
 * Reads a result by its own version, or by `versionWhenAbsent` if it has none.
 * Does not check indices and addresses.
 */
export function decodeResult(value: unknown, versionWhenAbsent: CniVersion, subject = "the result"): CniResult {
  return decodeResultShape(value, shapeFamilyOf(versionOf(value, versionWhenAbsent, subject)), subject);
}

/** Reads `prevResult` of a config: its version, if it has one, must have the same shape as the config's version. */
export function decodePrevResult(config: JsonObject, version: CniVersion): CniResult | undefined {
  const value = config["prevResult"];
  if (value === undefined || value === null) return undefined;

  const own = versionOf(value, version, "prevResult");
  if (shapeFamilyOf(own) !== shapeFamilyOf(version)) {
    throw new PluginError(
      "config-invalid",
      `Cannot use prevResult: it has cniVersion ${quoted(own)}, the config has "${version}"`,
    );
  }
  return decodeResultShape(value, shapeFamilyOf(version), "prevResult");
}

function versionOf(value: unknown, versionWhenAbsent: CniVersion, subject: string): CniVersion {
  if (typeof value !== "object" || value === null || !("cniVersion" in value)) return versionWhenAbsent;
  const version = value.cniVersion;
  if (version === undefined || version === null || version === "") return versionWhenAbsent;
  if (isCniVersion(version)) return version;
  throw new PluginError("decode-failure", `Cannot read ${subject}: unknown cniVersion ${quoted(version)}`);
}

function encodeFamilies(result: CniResult, cniVersion: CniVersion): JsonObject {
  const ip4 = encodeFamily(result, 4);
  const ip6 = encodeFamily(result, 6);
  if (ip4 === undefined && ip6 === undefined) {
    const state = "it has no address, and a result of that version can contain nothing else";
    throw new PluginError("version-incompatible", `Cannot return the result in cniVersion "${cniVersion}": ${state}`);
  }
  return { cniVersion, ip4, ip6, dns: encodeDns(result.dns) };
}

function encodeFamily(result: CniResult, family: 4 | 6): JsonObject | undefined {
  const first = result.ips.find(({ address }) => addressFamily(address) === family);
  if (first === undefined) return undefined;
  const routes = result.routes.filter(({ destination }) => addressFamily(destination) === family);
  return {
    ip: first.address,
    gateway: first.gateway || undefined,
    routes: unlessEmpty(routes.map(encodePlainRoute)),
  };
}

function encodeLists(result: CniResult, cniVersion: CniVersion): JsonObject {
  const rich = isAtLeast(cniVersion, "1.1.0");
  const versioned = shapeFamilyOf(cniVersion) === "versioned-ips";
  const dns = encodeDns(result.dns);
  return {
    cniVersion,
    interfaces: unlessEmpty(result.interfaces.map(rich ? encodeRichInterface : encodePlainInterface)),
    ips: unlessEmpty(result.ips.map(versioned ? encodeVersionedIp : encodeIp)),
    routes: unlessEmpty(result.routes.map(rich ? encodeRichRoute : encodePlainRoute)),
    // Libraries before 1.0.0 always print it; later ones only if it is not empty.
    dns: versioned || Object.values(dns).some((value) => value !== undefined) ? dns : undefined,
  };
}

function encodePlainInterface({ name, mac, sandbox }: CniInterface): JsonObject {
  return { name, mac: mac || undefined, sandbox: sandbox || undefined };
}

function encodeRichInterface(link: CniInterface): JsonObject {
  return {
    ...encodePlainInterface(link),
    mtu: link.mtu || undefined,
    socketPath: link.socketPath || undefined,
    pciID: link.pciId || undefined,
  };
}

function encodeIp({ address, gateway, interface: index }: CniIp): JsonObject {
  return { interface: index, address, gateway: gateway || undefined };
}

function encodeVersionedIp(ip: CniIp): JsonObject {
  return { version: String(addressFamily(ip.address)), ...encodeIp(ip) };
}

function encodePlainRoute({ destination, gateway }: CniRoute): JsonObject {
  return { dst: destination, gw: gateway || undefined };
}

function encodeRichRoute(route: CniRoute): JsonObject {
  return {
    ...encodePlainRoute(route),
    mtu: route.mtu || undefined,
    advmss: route.advmss || undefined,
    priority: route.priority || undefined,
    table: route.table,
    scope: route.scope,
  };
}

function encodeDns({ nameservers, domain, search, options }: CniDns): JsonObject {
  return {
    nameservers: unlessEmpty(nameservers),
    domain: domain || undefined,
    search: unlessEmpty(search),
    options: unlessEmpty(options),
  };
}

function unlessEmpty<Item>(items: readonly Item[]): readonly Item[] | undefined {
  return items.length === 0 ? undefined : items;
}
