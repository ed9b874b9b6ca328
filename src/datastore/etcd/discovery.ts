/**
 * etcd endpoints from DNS: the SRV records of the domain. Records without TLS are
 * used only if there are none for TLS, so that nothing can downgrade the
 * connection.
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

/** Resolver errors that mean "no such record". */
const NONE = new Set(["ENOTFOUND", "ENODATA", "ENONAME"]);

export async function discoverEndpoints(domain: string, random: () => number): Promise<readonly Endpoint[]> {
  // Imported here because it is rarely used and would add a millisecond to every start.
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
    `Cannot discover etcd endpoints of ${quoted(name)} at stage "resolve": ${reason} (SRV ${services})`,
    { cause, details: "check the SRV records of the domain and the system's resolver" },
  );
}

/** Lower priorities first; among equal priorities at random, in proportion to the weights (RFC 2782). */
export function orderRecords(records: readonly ServiceRecord[], random: () => number): readonly ServiceRecord[] {
  const ordered: ServiceRecord[] = [];
  let left = records.toSorted((one, other) => one.priority - other.priority || one.weight - other.weight);
  while (left.length > 0) {
    const candidates = left.filter(({ priority }) => priority === left[0]?.priority);
    const chosen = chooseByWeight(candidates, random());
    if (!chosen) break;
    ordered.push(chosen);
    left = left.filter((record) => record !== chosen);
  }
  return ordered;
}

function chooseByWeight(candidates: readonly ServiceRecord[], random: number): ServiceRecord | undefined {
  const total = candidates.reduce((sum, { weight }) => sum + weight, 0);
  let rest = random * total;
  const chosen = candidates.find(({ weight }) => {
    rest -= weight;
    return rest < 0;
  });
  return chosen ?? candidates[Math.floor(random * candidates.length)];
}
