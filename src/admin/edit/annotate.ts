import { identity } from "../../identity.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { quoted } from "../../quote.ts";
import { type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import { parseReference } from "../resources/reference.ts";
import { changeNamed } from "./change-named.ts";
import { type KeyChange, keyChangeOf, withChangedKeys } from "./key-change.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const { kind, name, rest } = parseReference(given);
  const change = keyChangeOf("annotation", rest, given);
  if (kind.kind === workloadEndpoint.kind) refuseOwnAnnotations(change);
  return changeNamed(context, given, {
    ...{ kind, name },
    change: (resource, target) => withChangedKeys(target, resource, change),
    action: "annotated",
  });
}

/** The plugin wrote them when it connected the workload: GC and address checks rely on them. */
function refuseOwnAnnotations({ set, remove }: KeyChange): void {
  const prefixes = [identity.labelPrefix, identity.annotationPrefix];
  const own = [...set.keys(), ...remove].find((key) => prefixes.some((prefix) => key.startsWith(prefix)));
  if (own === undefined) return;
  throw new UsageError(
    `Annotation ${quoted(own)} of a workload endpoint cannot be changed: it records how the workload was connected`,
  );
}
