/**
 * The pools and the settings that a manifest brings for a new cluster: created once, and never changed afterwards, so
 * that an administrator may change or delete them.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import { ipPool } from "../../model/ip-pool.ts";
import { resourceKey, resourcesPrefix } from "../../model/keys.ts";
import { nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { type Checked, formatProblems } from "../../model/problem.ts";
import type { Resource } from "../../model/resource.ts";
import { isObject } from "../../model/shape.ts";
import { DEFAULT_POOLS, type InstallSettings, NODE_AGENT_CONFIGURATION } from "./settings.ts";

/** A resource to create: its key, and its text. */
interface DefaultResource {
  readonly name: string;
  readonly key: string;
  readonly value: string;
}

export interface DefaultResources {
  readonly pools: readonly DefaultResource[];
  readonly configuration: DefaultResource | undefined;
}

interface Origin {
  readonly now: () => Date;
  readonly uuid: () => string;
}

/** Refuses what cannot be stored. */
export function defaultResources(
  { defaultPools, nodeAgentConfiguration: spec }: Pick<InstallSettings, "defaultPools" | "nodeAgentConfiguration">,
  origin: Origin,
): DefaultResources {
  const names = defaultPools.map(poolName);
  return {
    pools: defaultPools.map((pool, index) => {
      const name = numbered(names, index);
      const decoded = ipPool.decode({ kind: ipPool.kind, metadata: metadataOf(name, origin), spec: pool });
      return { name, key: resourceKey("ippools", { name }), value: ipPool.write(required(decoded, DEFAULT_POOLS)) };
    }),
    configuration: spec === undefined ? undefined : configurationOf(spec, origin),
  };
}

/** Returns what was created, for the log. */
export async function createDefaultResources(
  store: Pick<Datastore, "read" | "commit">,
  { pools, configuration }: DefaultResources,
  isNewDatastore: boolean,
): Promise<readonly string[]> {
  const created: string[] = [];
  const create = async ({ key, value }: DefaultResource, what: string) => {
    const written = await store.commit([{ kind: "create", key, value }]);
    if (written.ok) created.push(what);
  };
  const existing = await namesOfPools(store, pools);
  // An installation that was stopped may have created some of them, as long as the datastore is not initialized.
  const isOwn = (name: string) => isNewDatastore && pools.some((pool) => pool.name === name);
  if (existing.every(isOwn)) {
    for (const pool of pools) if (!existing.includes(pool.name)) await create(pool, `pool "${pool.name}"`);
  }
  if (configuration === undefined) return created;
  const { answers } = await store.read([{ kind: "key", key: configuration.key }]);
  if (answers[0]?.length === 0) await create(configuration, `NodeAgentConfiguration "${configuration.name}"`);
  return created;
}

async function namesOfPools(
  store: Pick<Datastore, "read">,
  wanted: DefaultResources["pools"],
): Promise<readonly string[]> {
  if (wanted.length === 0) return [];
  const prefix = resourcesPrefix("ippools");
  const { answers } = await store.read([{ kind: "prefix", prefix }]);
  return (answers[0] ?? []).map(({ key }) => key.slice(prefix.length));
}

function configurationOf(spec: unknown, origin: Origin): DefaultResource {
  const name = "default";
  const decoded = nodeAgentConfiguration.decode({
    kind: nodeAgentConfiguration.kind,
    metadata: metadataOf(name, origin),
    spec,
  });
  const value = nodeAgentConfiguration.write(required(decoded, NODE_AGENT_CONFIGURATION));
  return { name, key: resourceKey("nodeagentconfigurations", { name }), value };
}

/** `default-ipv4-ippool`, as administrators know it. */
function poolName(spec: unknown): string {
  const cidr = isObject(spec) && typeof spec["cidr"] === "string" ? spec["cidr"] : "";
  return `default-ipv${parsePrefix(cidr)?.network.family ?? 4}-ippool`;
}

/** The second pool of a family is `default-ipv4-ippool-2`. */
function numbered(names: readonly string[], index: number): string {
  const name = names[index] ?? "";
  const count = names.slice(0, index + 1).filter((other) => other === name).length;
  return count === 1 ? name : `${name}-${count}`;
}

function metadataOf(name: string, { now, uuid }: Origin) {
  return { name, uid: uuid(), creationTimestamp: now().toISOString() };
}

function required<R extends Resource>(checked: Checked<R>, variable: string): R {
  if (checked.ok) return checked.value;
  throw new PluginError(
    "config-invalid",
    `Cannot install: the environment variable ${variable} is invalid: ${formatProblems(checked.problems)}`,
    { details: "correct it in the manifest" },
  );
}
