/**
 * What the admin tool knows about a kind in addition to the model: the columns
 * of `get`, and hooks for commands that must do more for this kind than for
 * others. A command calls a hook; it never compares the name of a kind.
 */

import type { Datastore } from "../../datastore/datastore.ts";
import type { Problem as IpamProblem } from "../../ipam/invariants.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { PublicKind } from "../../model/kinds.ts";
import type { Problem } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import type { EndpointProblem } from "../ipam/check/leaks-and-duplicates.ts";
import type { Call, Clock, HostNetwork, Terminal } from "../main/context.ts";
import type { ActionResult } from "../resources/action-result.ts";

/** A column of `get`; wide columns are shown only with `-o wide`. */
export interface Column<R extends Resource = Resource> {
  readonly header: string;
  /** Its heading in the peer's tool, for `-o custom-columns`. */
  readonly alias?: string;
  readonly isWide?: true;
  // Methods, here and below, so that a row of one kind is assignable to the table of all kinds.
  cell(resource: R): string;
}

/** A resource as it is stored in the datastore. */
export interface StoredResource<R extends Resource = Resource> {
  /** With its `resourceVersion`. */
  readonly resource: R;
  readonly key: string;
  readonly revision: string;
  /** The text in the datastore. */
  readonly text: string;
}

/** What a deletion does if the resource is in use. */
export interface Deletion {
  readonly context: Call & Terminal & Clock;
  readonly inUse: "refuse" | "release";
}

/** A part of `describe`: rows of cells below a title. */
export interface DescribedSection {
  readonly title: string;
  /** In the line of the title. */
  readonly summary?: string;
  readonly rows: readonly (readonly string[])[];
}

/** What resources inherit from those of another kind. */
export interface InheritedLabels<R extends Resource = Resource> {
  readonly from: readonly AdminKind[];
  /** All labels that count, its own too. `all`: those of each kind in `from`, the same lists for all resources. */
  of(resource: R, ...all: readonly (readonly Resource[])[]): Readonly<Record<string, string>>;
}

export interface KindHooks<R extends Resource = Resource> {
  /** What `describe` shows in addition to the resource itself. `now`: the time of the datastore. */
  describe?(store: Datastore, resource: R, now: Date): Promise<readonly DescribedSection[]>;
  /** For `-l` and `--show-labels`. Absent: only its own labels count. */
  readonly inheritedLabels?: InheritedLabels<R>;
  /** What the user should know about a resource that is written on this host; it is written nevertheless. */
  warnings?(resource: R, context: HostNetwork): Promise<readonly string[]>;
  /** Checks against other records in the datastore before a resource is created. */
  checkCreate?(store: Datastore, resource: R): Promise<readonly Problem[]>;
  /** Checks what the resource refers to in the datastore, before it is created or changed. */
  checkWrite?(store: Datastore, resource: R): Promise<readonly Problem[]>;
  /** What the user should know about a resource as it is now, after it was created or changed. */
  noteOnceWritten?(store: Datastore, name: ResourceName): Promise<string | undefined>;
  /** Who uses the resource: it is then deleted only with --force. */
  usersOf?(store: Datastore, stored: StoredResource<R>): Promise<readonly string[]>;
  /** What to do first, instead of --force. */
  readonly remedyIfInUse?: string;
  /** Deletes a resource in several steps, or not at all; absent if only the record must be deleted. */
  deleteResource?(store: Datastore, stored: StoredResource<R>, deletion: Deletion): Promise<ActionResult>;
  /** Deletes records that exist only because of this resource: after it is deleted, and also if it was already gone. */
  afterDelete?(
    store: Datastore,
    name: ResourceName,
    context: Call & Terminal & Clock,
  ): Promise<Pick<ActionResult, "note">>;
  /** What the user wrote for this resource, and stays; `undefined`: nothing. */
  noteOfRest?(store: Datastore, name: ResourceName): Promise<string | undefined>;
}

/** What names a resource on the command line besides its own name. */
export interface OtherNames {
  readonly names: readonly string[];
  /** Their beginning is enough. */
  readonly ids: readonly string[];
  /** Where it is, if several have the name. */
  readonly node?: string;
}

export interface AdminKind<R extends Resource = Resource> extends PublicKind<R>, KindHooks<R> {
  readonly columns: readonly Column<R>[];
  /** Titles of columns that a narrow terminal leaves out first, after AGE. Absent: the last ones. */
  readonly leastWanted?: readonly string[];
  /** Absent: only its own name names a resource. */
  otherNames?(resource: R): OtherNames;
  /** Why a resource of this name is not in the datastore, and need not be; `undefined` for any other name. */
  absenceOf?(name: string): string | undefined;
  /** Note for the user after an unreadable resource was deleted. */
  readonly deletedUnreadNote?: string;
  /** How to repair an unreadable resource; `remove` says how to remove it. */
  remedyIfUnreadable?(remove: string): string;
  /** Problems of `ipam check` that an unreadable resource of this kind might disprove. */
  readonly uncertainIfUnreadable?: readonly (IpamProblem | EndpointProblem)["kind"][];
}

export function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}
