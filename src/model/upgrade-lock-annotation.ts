import { identity } from "../identity.ts";

/**
 * On the ClusterInformation while an upgrade has locked the datastore: since when. An ADD that had begun before may still
 * write for some time. The upgrade unlocks the datastore at its end, and nobody else should.
 */
export const UPGRADE_LOCK_ANNOTATION = `${identity.labelPrefix}locked-since`;

/** Beside it: how far they are copied, then a digest of the IPAM records. Others have written if they differ. */
export const COPIED_RECORDS_ANNOTATION = `${identity.labelPrefix}copied-records`;
