import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { givenLabels, labelSourcesOf } from "../../model/container-labels.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { quoted } from "../../quote.ts";
import { readContainerLabels } from "../kinds/container-labels.ts";
import { type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import { parseReference } from "../resources/reference.ts";
import { readOne } from "../resources/stored.ts";
import { changeNamed } from "./change-named.ts";
import { type KeyChange, keyChangeOf, withChangedKeys } from "./key-change.ts";
import { labelContainers, parseContainers, refuseNodeOption } from "./label-containers.ts";
import type { Target } from "./update.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const containers = parseContainers(given);
  if (containers !== undefined) return labelContainers(context, given, containers);
  refuseNodeOption(given);
  const { kind, name, rest } = parseReference(given);
  const change = keyChangeOf("label", rest, given);
  if (kind.kind === ENDPOINT.kind) refuseOwnLabels(change);
  return changeNamed(context, given, {
    ...{ kind, name },
    change: (resource, target) => withChangedKeys(target, resource, change),
    action: "labelled",
    check: (store, target) => refuseInherited(store, target, change),
  });
}

/** Policies of its namespace select an endpoint by them: without them it would leave its policies. */
const OWN_LABELS = ["namespace", "orchestrator", "serviceaccount"].map((name) => `${identity.labelPrefix}${name}`);

function refuseOwnLabels({ set, remove }: KeyChange): void {
  const own = OWN_LABELS.find((label) => set.has(label) || remove.has(label));
  if (own === undefined) return;
  throw new UsageError(
    `Label ${quoted(own)} of a workload endpoint cannot be changed: policies of its namespace and service account rely on it`,
  );
}

/** A value that is inherited wins, and the one that is set would have no effect. */
async function refuseInherited(store: Datastore, { kind, name }: Target, { set }: KeyChange): Promise<void> {
  const stored = kind.kind === ENDPOINT.kind ? await readOne(store, kind, name) : undefined;
  if (stored === undefined) return;
  const endpoint = ENDPOINT.codec.read(stored.text, stored.key);
  const sources = labelSourcesOf(endpoint, await readContainerLabels(store));
  for (const [label, value] of set) {
    const source = sources.find(({ spec }) => Object.hasOwn(givenLabels(spec), label));
    if (source === undefined || source.spec.labels[label] === value) continue;
    const { node, container, network } = source.spec;
    const target = container === undefined ? `network ${network}` : `container ${container} --node ${node}`;
    throw new PluginError(
      "resource-invalid",
      `Cannot set label ${quoted(label)}: ContainerLabels ${quoted(source.metadata.name)} gives it the value ${quoted(source.spec.labels[label])}, which wins`,
      { details: `change it there: ${identity.adminTool} label ${target} ${label}=${value} --overwrite` },
    );
  }
}
