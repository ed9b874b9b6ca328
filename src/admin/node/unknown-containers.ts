/**
 * Containers that run on this host although the datastore does not know them: their interfaces are there, with the name of
 * the network, and no endpoint names them. The datastore has lost its records, or is another one.
 */

import { counted, listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { pagesBelow } from "../../datastore/pages.ts";
import { PluginError } from "../../errors.ts";
import { containerOfMark } from "../../ipam/link-mark.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import type { PodLinkFacts } from "../host/facts.ts";
import type { Clock, Host } from "../main/context.ts";
import type { Finding } from "./finding.ts";

/** For a DEL in progress, which deletes the endpoint before the link. */
const RECHECK_MILLISECONDS = 500;
/** As runtimes show an ID. */
const SHORT_ID = 12;

/** The interfaces of its endpoints; `undefined` if that cannot be said, since one of them is unreadable. */
export async function readKnownInterfaces(store: Datastore, node: string): Promise<ReadonlySet<string> | undefined> {
  const interfaces = new Set<string>();
  try {
    for await (const { entries } of pagesBelow(store, ENDPOINT.prefix(), { node })) {
      for (const { key, value } of entries) {
        const { spec } = ENDPOINT.codec.read(value, key);
        if (spec.node === node && spec.interfaceName !== undefined) interfaces.add(spec.interfaceName);
      }
    }
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "record-malformed") return undefined;
    throw failure;
  }
  return interfaces;
}

interface Known {
  /** The name of the installed network: those of another may be in another datastore. */
  readonly network: string | undefined;
  readonly interfaces: ReadonlySet<string> | undefined;
}

/** Their IDs; those that are gone a moment later do not count. `links` were read before the datastore. */
export async function findUnknownContainers(
  context: Host & Clock,
  links: readonly PodLinkFacts[],
  known: Known,
): Promise<readonly string[]> {
  if (unknownContainers(links, known).length === 0) return [];
  await context.wait(RECHECK_MILLISECONDS);
  const { podLinks } = await context.readHostFacts();
  const marks = new Set(podLinks.map(({ alias }) => alias));
  return unknownContainers(
    links.filter(({ alias }) => marks.has(alias)),
    known,
  );
}

function unknownContainers(links: readonly PodLinkFacts[], { network, interfaces }: Known): readonly string[] {
  if (network === undefined || interfaces === undefined) return [];
  const containers = links
    .filter(({ name }) => !interfaces.has(name))
    .flatMap(({ alias = "" }) => containerOfMark(network, alias) ?? []);
  return [...new Set(containers)].toSorted();
}

/** `isKubernetes`: its pods are the endpoints, and the kubelet ends a container whose pod is gone. */
export function unknownFindings(containers: readonly string[], isKubernetes: boolean): readonly Finding[] {
  if (containers.length === 0) return [];
  const ids = listed(containers.map((id) => id.slice(0, SHORT_ID)));
  const unknown = `${counted(containers.length, "container runs", "containers run")} here that the datastore does not know (${ids})`;
  if (isKubernetes) {
    const message = `${unknown}: their pods are deleted, and the container runtime has not ended them`;
    return [{ check: "containers", state: "warning", message }];
  }
  const message = `${unknown}: was it lost? Put its copy back, or remove these containers and create them again`;
  return [{ check: "containers", state: "failed", message }];
}
