/**
 * The host ports that a runtime asks for (`runtimeConfig.portMappings`), checked
 * one by one. Pure. What they become for a pod's addresses is in claim.ts.
 */
import { isJsonObject, type JsonObject } from "../../cni/json.ts";
import { PluginError } from "../../errors.ts";
import { type Address, parseAddress, unmapAddress } from "../../ip/address.ts";
import { quoted } from "../../quote.ts";

const PROTOCOL_NUMBER = { tcp: 6, udp: 17, sctp: 132 } as const;

export type Protocol = keyof typeof PROTOCOL_NUMBER;

export interface PortMapping {
  readonly protocol: Protocol;
  readonly hostPort: number;
  readonly containerPort: number;
  /** Absent: every address of the host, in both families. */
  readonly hostIp?: Address;
}

const LAST_PORT = 65535;

/** Throws one error that names everything that is wrong; none asked for is an empty list. */
export function decodePortMappings(config: JsonObject): readonly PortMapping[] {
  const runtimeConfig = config["runtimeConfig"];
  if (runtimeConfig === undefined || runtimeConfig === null) return [];
  if (!isJsonObject(runtimeConfig)) throw misshapen("runtimeConfig", "an object");
  const list = runtimeConfig["portMappings"];
  if (list === undefined || list === null) return [];
  if (!Array.isArray(list)) throw misshapen("runtimeConfig.portMappings", "a list");

  const problems: string[] = [];
  const mappings: PortMapping[] = [];
  let index = 0;
  for (const entry of list) {
    const place = `portMappings[${index++}]`;
    if (!isJsonObject(entry)) throw misshapen(`runtimeConfig.${place}`, "an object");
    const mapping = decodeMapping(entry, place, problems);
    if (mapping !== undefined) mappings.push(mapping);
  }
  if (problems.length === 0) return mappings;
  throw new PluginError("config-invalid", `Cannot map host ports: ${problems.join("; ")}`);
}

export function protocolNumber(protocol: Protocol): number {
  return PROTOCOL_NUMBER[protocol];
}

/** `tcp 8080` or `udp 192.0.2.1:53`, as messages call a host port. */
export function protocolName(number: number): string {
  for (const [name, each] of Object.entries(PROTOCOL_NUMBER)) if (each === number) return name;
  return `protocol ${number}`;
}

function decodeMapping(entry: JsonObject, place: string, problems: string[]): PortMapping | undefined {
  const known = problems.length;
  const fields = anyCase(entry);
  const hostPort = decodePort(fields.get("hostport"), `${place}.hostPort`, problems);
  const containerPort = decodePort(fields.get("containerport"), `${place}.containerPort`, problems);
  const protocol = decodeProtocol(fields.get("protocol") ?? "", `${place}.protocol`, problems);
  const hostIp = decodeHostIp(fields.get("hostip") ?? "", `${place}.hostIP`, problems);
  if (problems.length > known) return undefined;
  return { protocol, hostPort, containerPort, ...(hostIp === undefined ? {} : { hostIp }) };
}

/** containerd writes `HostPort`, others `hostPort`: Go's decoder, which both are made for, takes either. */
function anyCase(entry: JsonObject): ReadonlyMap<string, unknown> {
  return new Map(Object.entries(entry).map(([name, value]) => [name.toLowerCase(), value]));
}

function decodePort(value: unknown, place: string, problems: string[]): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= LAST_PORT) return value;
  problems.push(`${place} is ${shown(value)}, not a port between 1 and ${LAST_PORT}`);
  return 0;
}

/** In any case; TCP where nothing is said, as in the orchestrator's API. */
function decodeProtocol(value: unknown, place: string, problems: string[]): Protocol {
  const name = typeof value === "string" ? value.toLowerCase() : undefined;
  if (name === "" || name === "tcp") return "tcp";
  if (name === "udp" || name === "sctp") return name;
  problems.push(`${place} is ${shown(value)}, not one of tcp, udp, sctp`);
  return "tcp";
}

function decodeHostIp(value: unknown, place: string, problems: string[]): Address | undefined {
  if (value === "") return undefined;
  const address = typeof value === "string" ? parseAddress(value) : undefined;
  if (address === undefined) problems.push(`${place} is ${shown(value)}, not an IP address`);
  else if (address.family === 6 && address.value === 1n) {
    problems.push(`${place} is "::1": the kernel cannot route replies back to it; use 127.0.0.1`);
  }
  return address === undefined ? undefined : unmapAddress(address);
}

function shown(value: unknown): string {
  return value === undefined ? "missing" : quoted(value);
}

function misshapen(place: string, wanted: string): PluginError {
  return new PluginError("decode-failure", `Cannot read the network config: "${place}" is not ${wanted}`);
}
