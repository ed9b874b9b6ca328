import { identity } from "../../identity.ts";
import { CONTAINER_ORCHESTRATOR } from "../../model/container-labels.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { withDatastore } from "../datastore/open.ts";
import { namedBy, workloadNames } from "../kinds/workload-names.ts";
import { USUAL_NAMESPACE } from "../resources/options.ts";
import { kindNamed, namespaceOf } from "../resources/reference.ts";
import { findAll } from "../resources/stored.ts";
import { UnknownKind } from "../resources/unknown-kind.ts";
import type { Command, Given, UsageError } from "./command.ts";
import type { Clock, DatastoreAccess } from "./context.ts";

/** `describe web`, `label web role=web`: a kind is missing, and the word is the name of a container or pod. */

/** A wrong call is reported at once, also if the datastore does not answer. */
const PATIENCE_MILLISECONDS = 1_000;

interface Call {
  readonly command: Command;
  readonly given: Given;
  readonly context: DatastoreAccess & Clock;
}

/** The same error if no workload has the name, or that cannot be known. */
export async function suggestWorkload(unknown: UnknownKind, call: Call): Promise<UsageError> {
  const { command, given, context } = call;
  const { word } = unknown;
  if (command.completesNames === undefined || given.operands[0] !== word) return unknown;
  const looking = kindOfWorkload(word, call).catch(() => undefined);
  const kind = await Promise.race([looking, context.wait(PATIENCE_MILLISECONDS).then(() => undefined)]);
  if (kind === undefined) return unknown;
  const namespace = namespaceOf(given);
  const option = namespace === undefined ? [] : ["-n", namespace];
  const right = [identity.adminTool, command.name, kind, ...given.operands, ...option].join(" ");
  return new UnknownKind(word, `did you mean "${right}"?`);
}

/** The word for what has the name. */
async function kindOfWorkload(word: string, { given, context }: Call): Promise<string | undefined> {
  const namespace = namespaceOf(given) ?? USUAL_NAMESPACE;
  return withDatastore(context, given, async (store) => {
    const { readable } = await findAll(store, kindNamed(ENDPOINT.kind), namespace);
    const endpoints = readable.map(({ key, text }) => ENDPOINT.codec.read(text, key));
    const [found] = namedBy(word, endpoints, workloadNames);
    if (found === undefined) return undefined;
    return found.spec.orchestrator === CONTAINER_ORCHESTRATOR ? "container" : "wep";
  });
}
