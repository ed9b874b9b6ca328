/**
 * The sources that pods of this host may use beside their own addresses, as their
 * endpoints record them, or the host if endpoints are pods. Only links that are marked
 * on the host are looked for.
 */
import type { Datastore, Entry } from "../datastore/datastore.ts";
import { pagesBelow } from "../datastore/pages.ts";
import { PluginError } from "../errors.ts";
import type { RecordedSources } from "../firewall/recorded-sources.ts";
import { parsePrefixOrAddress } from "../ip/prefix.ts";
import type { AttachmentRecord } from "../ipam/attachment-record.ts";
import { readNodeRecords } from "../ipam/leaks/node-records.ts";
import { formatMark } from "../ipam/link-mark.ts";
import { NETWORK_ANNOTATION } from "../model/endpoint-labels.ts";
import { resourcesPrefix } from "../model/keys.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";

export interface MarkedLinks {
  /** Of links that exist. */
  readonly marks: ReadonlySet<string>;
  /** By the interface of the host. */
  readonly attachments: ReadonlyMap<string, AttachmentRecord>;
}

export async function readRecordedSources(
  store: Datastore,
  { node, marks, attachments }: MarkedLinks & { readonly node: string },
): Promise<readonly RecordedSources[]> {
  if (store.isOrchestratorApi) return sourcesOnHost({ marks, attachments });
  const found = new Map<string, RecordedSources>();
  const collect = (entries: Iterable<Entry>) => {
    const endpoints = [...entries].flatMap((entry) => readableEndpoint(entry) ?? []);
    for (const source of sourcesOfEndpoints(endpoints, marks)) found.set(source.mark, source);
    return found.size === marks.size;
  };
  if (collect((await readNodeRecords(store, node)).endpoints.values())) return [...found.values()];
  // Addresses from another IPAM plugin, or without IPAM: nothing else names the namespaces of their endpoints.
  for await (const { entries } of pagesBelow(store, resourcesPrefix("workloadendpoints"))) {
    if (collect(entries)) break;
  }
  return [...found.values()];
}

/** If endpoints are pods: users can write what their pods say, so only the records of the host count. */
export function sourcesOnHost({ marks, attachments }: MarkedLinks): readonly RecordedSources[] {
  return [...attachments.values()]
    .filter(({ mark }) => marks.has(mark))
    .map(({ mark, sourcePrefixes }) => ({
      mark,
      prefixes: sourcePrefixes.flatMap((text) => parsePrefixOrAddress(text) ?? []),
    }));
}

export function* sourcesOfEndpoints(
  endpoints: Iterable<WorkloadEndpoint>,
  marks: ReadonlySet<string>,
): Generator<RecordedSources> {
  for (const { metadata, spec } of endpoints) {
    const network = metadata.annotations?.[NETWORK_ANNOTATION];
    const { containerID: containerId, endpoint: ifname, allowSpoofedSourcePrefixes = [] } = spec;
    if (network === undefined || containerId === undefined || ifname === undefined) continue;
    const mark = formatMark({ network, containerId, ifname });
    if (!marks.has(mark)) continue;
    yield { mark, prefixes: allowSpoofedSourcePrefixes.flatMap((text) => parsePrefixOrAddress(text) ?? []) };
  }
}

/** One that cannot be read concerns only its own pod: it has no further sources and no floating IPs. */
export function readableEndpoint({ key, value }: Entry): WorkloadEndpoint | undefined {
  try {
    return workloadEndpoint.read(value, key);
  } catch (failure) {
    if (failure instanceof PluginError) return undefined;
    throw failure;
  }
}
