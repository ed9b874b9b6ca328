/**
 * etcd's endpoints from the domain name system: SRV records of the domain, those
 * for TLS first. Plain ones are looked at only where there are none for TLS, so
 * that nobody is led away from it.
 */
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import type { Endpoint } from "./endpoints.ts";

export interface ServiceRecord {
  readonly name: string;
  readonly port: number;
  readonly priority: number;
  readonly weight: number;
}

const SERVICES = [
  { service: "_etcd-client-ssl._tcp", scheme: "https" },
  { service: "_etcd-client._tcp", scheme: "http" },
] as const;

/** Answers of a resolver that say "there is none". */
const NONE = new Set(["ENOTFOUND", "ENODATA", "ENONAME"]);

export async function discoverEndpoints(domain: string, random: () => number): Promise<readonly Endpoint[]> {
  // Imported here: few use it, and it costs a millisecond of every start.
  const { resolveSrv } = await import("node:dns/promises");
  for (const { service, scheme } of SERVICES) {
    const records = await lookUp(`${service}.${domain}`, resolveSrv);
    if (records.length === 0) continue;
    return orderRecords(records, random).map(({ name, port }) => ({
      url: `${scheme}://${name.replace(/\.$/, "")}:${port}`,
      user: undefined,
    }));
  }
  throw undiscovered(domain, "there is no such record", undefined);
}

async function lookUp(
  name: string,
  resolveSrv: (name: string) => Promise<ServiceRecord[]>,
): Promise<readonly ServiceRecord[]> {
  try {
    return await resolveSrv(name);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (NONE.has(code.replace(/^DNS_/, ""))) return [];
    throw undiscovered(name, code === "" ? String(error) : code, error);
  }
}

function undiscovered(name: string, reason: string, cause: unknown): PluginError {
  const services = SERVICES.map(({ service }) => service).join(" or ");
  return new PluginError(
    "datastore-unavailable",
    `Cannot discover etcd below ${quoted(name)} at stage "resolve": ${reason} (SRV ${services})`,
    { cause, details: "check the SRV records of the domain and the system's resolver" },
  );
}

/** Lower priorities first; among equals by lot, in proportion to their weights (RFC 2782). */
export function orderRecords(records: readonly ServiceRecord[], random: () => number): readonly ServiceRecord[] {
  const ordered: ServiceRecord[] = [];
  let left = records.toSorted((one, other) => one.priority - other.priority || one.weight - other.weight);
  while (left.length > 0) {
    const rivals = left.filter(({ priority }) => priority === left[0]?.priority);
    const chosen = drawLot(rivals, random());
    if (!chosen) break;
    ordered.push(chosen);
    left = left.filter((record) => record !== chosen);
  }
  return ordered;
}

function drawLot(rivals: readonly ServiceRecord[], lot: number): ServiceRecord | undefined {
  const total = rivals.reduce((sum, { weight }) => sum + weight, 0);
  let mark = lot * total;
  const chosen = rivals.find(({ weight }) => {
    mark -= weight;
    return mark < 0;
  });
  return chosen ?? rivals[Math.floor(lot * rivals.length)];
}
