/**
 * What the admin tool knows of a kind besides the model: the columns of `get`,
 * and hooks where a command must do more for this kind than for others. A
 * command asks for a hook; it never compares the name of a kind.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import type { Problem as IpamProblem } from "../../ipam/invariants.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { PublicKind } from "../../model/kinds.ts";
import type { Problem } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import type { Context } from "../command.ts";
import type { EndpointProblem } from "../ipam/endpoint-problems.ts";
import type { Done } from "../resources/done.ts";

/** A column of `get`; those marked wide stand only in `-o wide`. */
export interface Column<R extends Resource = Resource> {
  readonly header: string;
  readonly isWide?: true;
  // Methods, here and below, so that a row of one kind may stand in the table of all.
  cell(resource: R): string;
}

/** A resource as it lies in the datastore. */
export interface StoredResource<R extends Resource = Resource> {
  /** With its `resourceVersion`. */
  readonly resource: R;
  readonly key: string;
  readonly revision: string;
  /** The text in the datastore. */
  readonly text: string;
}

/** What a deletion does about a resource that others use. */
export interface Deletion {
  readonly context: Context;
  readonly inUse: "refuse" | "release";
}

export interface KindHooks<R extends Resource = Resource> {
  /** What only the datastore can tell of a resource before it is created. */
  checkCreate?(store: Datastore, resource: R): Promise<readonly Problem[]>;
  /** Deletes a resource in several steps, or not at all; absent where the record alone goes. */
  deleteResource?(store: Datastore, stored: StoredResource<R>, deletion: Deletion): Promise<Done>;
  /** Removes what exists only for the record's sake: after the record, and also when that was gone before. */
  afterDelete?(store: Datastore, name: ResourceName, context: Context): Promise<Pick<Done, "note">>;
}

export interface AdminKind<R extends Resource = Resource> extends PublicKind<R>, KindHooks<R> {
  readonly columns: readonly Column<R>[];
  /** What the user must know after one was deleted that could not be read. */
  readonly noteOfUnread?: string;
  /** How to go on with one that cannot be read; `remove` says how to remove it. */
  remedyOfUnreadable?(remove: string): string;
  /** What `ipam check` finds that one of this kind which cannot be read might disprove. */
  readonly mayDisprove?: readonly (IpamProblem | EndpointProblem)["kind"][];
}
