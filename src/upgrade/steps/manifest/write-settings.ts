/** Settings that were variables of the node agent, in NodeAgentConfiguration `default`. */
import type { Datastore, Entry } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { resourceKey } from "../../../model/keys.ts";
import {
  type NodeAgentConfiguration,
  type NodeAgentConfigurationSpec,
  nodeAgentConfiguration,
} from "../../../model/node-agent-configuration.ts";
import { formatProblems } from "../../../model/problem.ts";
import type { WantedSettings } from "../../manifest-install/wanted.ts";
import { isSame } from "../../merge/canonical-json.ts";

const NAME = "default";
const KEY = resourceKey("nodeagentconfigurations", { name: NAME });
const ATTEMPTS = 5;

/** The names of the fields that differ. */
export async function missingSettings(
  datastore: Pick<Datastore, "read">,
  wanted: WantedSettings,
): Promise<readonly string[]> {
  const { spec } = await readConfiguration(datastore);
  return Object.entries(nextSpec(spec, wanted))
    .filter(([name, value]) => !isSame(spec[name as keyof typeof spec], value))
    .map(([name]) => name);
}

export function hasSettings({ settings, usualSettings = {}, formerDefaults = {} }: WantedSettings): boolean {
  return Object.keys({ ...settings, ...usualSettings, ...formerDefaults }).length > 0;
}

/** Variables came before the resource in earlier releases, so they do now, also if they have the usual value. */
export function nextSpec(spec: NodeAgentConfigurationSpec, wanted: WantedSettings): NodeAgentConfigurationSpec {
  const { settings, usualSettings = {}, formerDefaults = {} } = wanted;
  const present = Object.entries(usualSettings).filter(([name]) => Object.hasOwn(spec, name));
  return { ...formerDefaults, ...spec, ...Object.fromEntries(present), ...settings };
}

interface Origin {
  readonly now: () => Date;
  readonly uuid: () => string;
}

export async function writeSettings(
  datastore: Pick<Datastore, "read" | "commit">,
  wanted: WantedSettings,
  origin: Origin,
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const { entry, metadata, spec } = await readConfiguration(datastore);
    const next = nextSpec(spec, wanted);
    if (isSame(spec, next)) return;
    const own = metadata ?? { name: NAME, uid: origin.uuid(), creationTimestamp: origin.now().toISOString() };
    const value = nodeAgentConfiguration.write(decoded(own, next), entry?.value);
    const written = await datastore.commit([
      entry === undefined
        ? { kind: "create", key: KEY, value }
        : { kind: "update", key: KEY, value, revision: entry.revision },
    ]);
    if (written.ok) return;
  }
  throw new PluginError(
    "resource-changed",
    `Cannot write NodeAgentConfiguration "${NAME}": others change it all the time`,
  );
}

interface Found {
  readonly entry?: Entry;
  readonly metadata?: object;
  readonly spec: NodeAgentConfigurationSpec;
}

async function readConfiguration(datastore: Pick<Datastore, "read">): Promise<Found> {
  const { answers } = await datastore.read([{ kind: "key", key: KEY }]);
  const entry = answers[0]?.[0];
  if (entry === undefined) return { spec: {} };
  const { metadata, spec } = nodeAgentConfiguration.read(entry.value, KEY);
  return { entry, metadata, spec };
}

function decoded(metadata: object, spec: NodeAgentConfigurationSpec): NodeAgentConfiguration {
  const result = nodeAgentConfiguration.decode({ kind: nodeAgentConfiguration.kind, metadata, spec });
  if (result.ok) return result.value;
  throw new PluginError(
    "resource-invalid",
    `Cannot write NodeAgentConfiguration "${NAME}": ${formatProblems(result.problems)}`,
  );
}
