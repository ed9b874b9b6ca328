/** Changes part of a resource: read, change, write if it is still at the revision read; otherwise start again. */

import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import { formatProblems } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import type { AdminKind } from "../kinds/kind.ts";
import type { Clock } from "../main/context.ts";
import { givenResource } from "../manifest/manifest.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { notFound } from "../resources/find.ts";
import { USUAL_NAMESPACE } from "../resources/options.ts";
import { referenceText } from "../resources/reference.ts";
import { readOne } from "../resources/stored.ts";
import { type WriteOutcome, writeResource } from "../resources/write.ts";

const ATTEMPTS = 10;
/** The longest first wait; the limit grows by as much with each attempt. */
const WAIT_MILLISECONDS = 20;

export interface Target {
  readonly kind: AdminKind;
  readonly name: ResourceName;
}

/** `change` gets the resource with its `resourceVersion`, and returns the new one. */
export async function updateResource(
  store: Datastore,
  { kind, name }: Target,
  { change, context }: { readonly change: (resource: Resource) => unknown; readonly context: Clock },
): Promise<WriteOutcome & Required<Pick<ActionResult, "warnings">>> {
  for (let attempt = 1; ; attempt += 1) {
    const stored = await readOne(store, kind, name);
    if (!stored) throw await notFound(store, { kind, name });
    const changed = change(stored.resource);
    const decoded = kind.codec.decode(changed);
    if (!decoded.ok) {
      const problems = formatProblems(decoded.problems);
      throw new PluginError("resource-invalid", `Cannot change ${referenceText(kind, name)}: ${problems}`);
    }
    requireSameName({ kind, name }, decoded.value);
    const given = givenResource(kind, decoded.value, name.namespace ?? USUAL_NAMESPACE);
    try {
      const written = await writeResource(store, given, {
        mode: "replace",
        gave: "change",
        now: () => context.now(),
        uuid: () => context.uuid(),
      });
      return { ...written, warnings: withoutEffect(kind.kind, decoded.value.spec) };
    } catch (failure) {
      const isWorthwhile = failure instanceof PluginError && failure.retry === "after reading again";
      const hasFixedVersion = decoded.value.metadata.resourceVersion !== stored.revision;
      if (!isWorthwhile || hasFixedVersion || attempt === ATTEMPTS) throw failure;
      await context.wait(context.random() * WAIT_MILLISECONDS * attempt);
    }
  }
}

function requireSameName({ kind, name }: Target, { metadata }: Resource): void {
  if (metadata.name === name.name && (metadata.namespace === undefined || metadata.namespace === name.namespace))
    return;
  throw new PluginError("resource-invalid", `Cannot change ${referenceText(kind, name)}: the name cannot be changed`);
}
