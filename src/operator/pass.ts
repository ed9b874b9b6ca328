/** What one pass of the operator works with, and what it finds. */
import type { KubeClient } from "../kube/api.ts";
import type { LiveObject } from "../release/live-object.ts";
import type { Applier } from "./apply.ts";
import type { ComponentState } from "./conditions.ts";
import type { FormerSecrets } from "./copied-secrets.ts";
import type { EventOptions } from "./events.ts";
import type { RecordsFollower } from "./follow-records.ts";
import type { FollowedSnapshot, Namespaces } from "./followed-objects.ts";

export interface PassOptions {
  readonly client: Pick<KubeClient, "request">;
  readonly namespaces: Namespaces;
  /** The release of the API server. */
  readonly serverVersion: () => string;
  readonly applier: Applier;
  readonly formerSecrets: FormerSecrets;
  readonly records: RecordsFollower;
  /** Throws if this process may not write any more. */
  readonly requireLeading: () => void;
  readonly log: (message: string, level: "INFO" | "WARNING") => void;
  readonly events: EventOptions;
  readonly now: () => Date;
}

export interface Pass {
  readonly snapshot: FollowedSnapshot;
  readonly installation: LiveObject;
}

export interface Found {
  /** As it is after the pass. */
  readonly installation: LiveObject;
  readonly components: Readonly<Record<string, ComponentState>>;
  /** Components that the Installation does not ask for: what was reported on them is removed. */
  readonly without?: readonly string[];
  /** Of the Installation: what is known besides its conditions. */
  readonly status?: Readonly<Record<string, unknown>>;
}
