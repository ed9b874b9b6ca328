/** What `label`, `annotate` and `patch` do alike: change the one resource that the user names, and say whom that closes or opens. */

import type { Datastore } from "../../datastore/datastore.ts";
import type { Resource } from "../../model/resource.ts";
import { withDatastore } from "../datastore/open.ts";
import type { ExitCode, Given } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { surroundingsOf } from "../resources/dry-run.ts";
import { forEachResource } from "../resources/for-each-resource.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { resolveName } from "../resources/resolve-name.ts";
import { withWrittenNote } from "../resources/written-note.ts";
import { type Target, updateResource } from "./update.ts";

export interface NamedChange {
  readonly change: (resource: Resource, target: Target) => unknown;
  /** What is printed if it changes something. */
  readonly action: ActionResult["action"];
  /** Fails if the change may not be made. */
  readonly check?: (store: Datastore, target: Target) => Promise<void>;
}

export function changeNamed(
  context: DatastoreAccess & Host & Clock,
  given: Given,
  { kind, name, change, action, check }: Target & NamedChange,
): Promise<ExitCode> {
  return withDatastore(context, given, async (store) => {
    const work = surroundingsOf(given, { store, context });
    return withPolicyNotes(work.store, { context, given, kinds: [kind] }, async (noted) =>
      forEachResource(context, given, {
        all: [{ kind, name: await resolveName(store, kind, name) }],
        act: async (target) => {
          await check?.(work.store, target);
          const done = await updateResource(noted, target, {
            change: (resource) => change(resource, target),
            context: work.context,
          });
          const result = { ...done, action: done.action === "unchanged" ? done.action : action };
          return withWrittenNote(result, noted, target);
        },
      }),
    );
  });
}
