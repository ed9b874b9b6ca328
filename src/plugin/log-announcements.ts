import type { Family } from "../ip/address.ts";
import { type AnnouncingFacts, announcementOf, describeAnnouncement } from "../ipam/announcement.ts";
import type { Pool } from "../ipam/pools.ts";
import type { Log } from "../log/log.ts";
import { isObject } from "../model/shape.ts";
import { parseJson } from "../parse-json.ts";
import { birdFiles } from "../routing/bird/bird-files.ts";
import type { AnnotationRequests } from "./annotations.ts";
import type { Surroundings } from "./session.ts";

export interface AnnouncementMeans {
  readonly log: Pick<Log, "info" | "warning">;
  readonly surroundings: Pick<Surroundings, "runDirectory" | "readText">;
}

/** Logs whether other hosts learn routes to the addresses that the annotations request and IPAM does not assign. */
export function logAnnouncements(
  { floatingAddresses, addressesWithoutIpam }: AnnotationRequests,
  pools: readonly Pool[],
  { log, surroundings }: AnnouncementMeans,
): void {
  const requested = [
    { use: "without IPAM", annotated: addressesWithoutIpam },
    { use: "floating", annotated: floatingAddresses },
  ] as const;
  if (requested.every(({ annotated }) => annotated === undefined)) return;
  const without = whatIsMissing(surroundings);
  for (const { use, annotated } of requested) {
    for (const address of annotated?.value ?? []) {
      const announcement = announcementOf(address, use, { pools, ...without });
      const message = describeAnnouncement(address, annotated?.place ?? "", announcement);
      if (announcement.isAnnounced) log.info(message);
      else log.warning(message);
    }
  }
}

/** What the node agent says about BIRD on this host. Read without its schema: an ADD loads no more than it needs. */
function whatIsMissing({ runDirectory, readText }: AnnouncementMeans["surroundings"]): Omit<AnnouncingFacts, "pools"> {
  const state = parsedOrNothing(readText(birdFiles(runDirectory).state));
  if (!isObject(state)) {
    const reason = "the node agent has not started BGP on this host";
    return { withoutBgp: () => reason, withoutRouting: "the node agent has not started on this host" };
  }
  const { kind, families, routing } = state;
  const stopped = kind === "running" ? undefined : `BGP does not run on this host (${state["reason"]})`;
  return {
    withoutBgp: (family) =>
      stopped ?? (isWithout(families, family) ? `BGP on this host has no session of IPv${family}` : undefined),
    withoutRouting: routing === "Disabled" ? `this node does not route (${state["reason"]})` : undefined,
  };
}

/** An agent of an earlier release does not say which it has. */
function isWithout(families: unknown, family: Family): boolean {
  return Array.isArray(families) && !families.includes(family);
}

function parsedOrNothing(text: string | undefined): unknown {
  try {
    return text === undefined ? undefined : parseJson(text);
  } catch {
    return undefined;
  }
}
