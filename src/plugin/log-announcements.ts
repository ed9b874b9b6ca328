import { announcementOf, describeAnnouncement } from "../ipam/announcement.ts";
import type { Pool } from "../ipam/pools.ts";
import type { Log } from "../log/log.ts";
import type { AnnotationRequests } from "./annotations.ts";

/** Logs whether other hosts learn routes to the addresses that the annotations request and IPAM does not assign. */
export function logAnnouncements(
  { floatingAddresses, addressesWithoutIpam }: AnnotationRequests,
  pools: readonly Pool[],
  log: Pick<Log, "info" | "warning">,
): void {
  for (const { value, place } of [addressesWithoutIpam, floatingAddresses].filter((each) => each !== undefined)) {
    for (const address of value) {
      const announcement = announcementOf(address, pools);
      const message = describeAnnouncement(address, place, announcement);
      if (announcement.isAnnounced) log.info(message);
      else log.warning(message);
    }
  }
}
