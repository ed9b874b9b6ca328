/** What the user has decided: flags of `upgrade plan`, kept in the plan's file. */
export interface UpgradeOptions {
  /** Rule 10, which is not part of every upgrade. */
  readonly automaticHostEndpoints: boolean;
  /** Hosts may become open by rule 10. */
  readonly acceptDefaultAllow: boolean;
  /** Labels of nodes may be replaced by those of host endpoints. */
  readonly overwriteLabels: boolean;
  /** `allow-all-upgrade` may go although host endpoints have no other policy. */
  readonly reviewed: boolean;
  /** Edits of the user against changes of the release: stop, keep the edit, or take the release's. */
  readonly onConflict: "fail" | "mine" | "theirs";
  /** API groups that the search for owner references leaves out. */
  readonly ignoredGroups: readonly string[];
  /** Path of the chart, or its name in a repository. */
  readonly chart?: string;
  /** Objects and workloads without progress for so long stop the upgrade. */
  readonly stallSeconds: number;
  /** So many nodes, or such a share of them (`10%`), are updated at once. */
  readonly maxUnavailable?: number | string;
  /** While the datastore is locked, the update goes on without a node that takes longer. */
  readonly nodeSeconds?: number;
  /** The datastore stays locked at least so long: an ADD that had begun before the lock has ended then. */
  readonly lockSeconds?: number;
}
