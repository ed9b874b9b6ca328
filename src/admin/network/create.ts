/**
 * Makes a network of containers in one step. The network list is written last: a runtime that sees it finds everything else.
 * If a step fails, what was made before it is deleted.
 */
import { parseBandwidthQuantity } from "../../chained/bandwidth/quantity.ts";
import type { DatastoreSettings } from "../../config/datastore-settings.ts";
import { networkConfigDirectory } from "../../config/installed-network.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { describeFailure, PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatPrefix, type Prefix, parseInterfaceAddress, parsePrefix, prefixAround } from "../../ip/prefix.ts";
import { DatastoreLocked } from "../../ipam/cluster.ts";
import { initialize } from "../../ipam/initialize.ts";
import { isRuntimeName, RUNTIME_NAME_RULE } from "../../model/container-labels.ts";
import { isResourceName } from "../../model/metadata.ts";
import { quoted } from "../../quote.ts";
import { keyChangeOf } from "../edit/key-change.ts";
import { findPools } from "../ipam/pools.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import { decodeManifests, type GivenResource } from "../manifest/manifest.ts";
import { registerIfMissing } from "../node/register.ts";
import { referenceText } from "../resources/reference.ts";
import { writeResource } from "../resources/write.ts";
import { networkOf, readHostNetworks, withDatastoreOf } from "./host-networks.ts";
import { planNetwork, type WantedNetwork } from "./plan-network.ts";

type Means = DatastoreAccess & Host & Clock;

/** After those that are named by hand, which begin with lower numbers, and before podman's own. */
const FILE_NUMBER = 80;

export async function run(context: Means, given: Given): Promise<ExitCode> {
  const wanted = wantedNetwork(given);
  const networks = await readHostNetworks(context);
  const same = networks.find(({ name }) => name === wanted.name);
  if (same !== undefined) throw exists(wanted.name, same.file);
  const file = `${networkConfigDirectory(context)}/${FILE_NUMBER}-${wanted.name}.conflist`;
  const installed = networks.find(({ entry }) => entry !== undefined)?.list;
  // Decoded as the plugin will: what it would refuse is refused before anything is written.
  const first = planNetwork({ ...wanted, pools: [] }, installed);

  const network = networkOf({ file, name: wanted.name, list: first.list });
  const made = await withDatastoreOf(network, context, async (store, kind) => {
    await prepare(store, kind, context);
    const pools = await poolsNamed(store, given.lists.get("pool") ?? []);
    const { resources, list } = planNetwork({ ...wanted, pools }, installed);
    const written = await writeAll(store, resources, context);
    try {
      await context.replaceFile(file, `${JSON.stringify(list, undefined, 2)}\n`);
    } catch (failure) {
      await takeBack(store, written, context);
      throw failure;
    }
    return written;
  });
  if (wanted.isIsolated) await waitForProtection(context);
  const resources = made.map(({ given: { kind, name } }) => referenceText(kind, name));
  context.stdout(
    wantsJson(given)
      ? `${JSON.stringify({ network: wanted.name, file, resources }, undefined, 2)}\n`
      : [...resources.map((each) => `${each} created`), `network ${wanted.name} created: ${file}`, ""].join("\n"),
  );
  return EXIT_OK;
}

function wantedNetwork(given: Given): Omit<WantedNetwork, "pools"> {
  const [name, ...others] = given.operands;
  if (name === undefined) throw new UsageError("The name of the network is required");
  if (others.length > 0) throw new UsageError(`One network is created at a time; remove ${quoted(others.join(" "))}`);
  if (!isRuntimeName(name) || !isResourceName(name)) {
    const rule = isRuntimeName(name)
      ? "its pools have its name: use lower-case letters, digits, - and ."
      : RUNTIME_NAME_RULE;
    throw new UsageError(`${quoted(name)} cannot be the name of a network; ${rule}`);
  }
  const labels = given.lists.get("label") ?? [];
  const rate = given.values.get("rate");
  const subnets = (given.lists.get("subnet") ?? []).map(subnetOf);
  const second = subnets.find(({ network: { family } }, index) =>
    subnets.slice(0, index).some(({ network }) => network.family === family),
  );
  if (second !== undefined) {
    const { family } = second.network;
    throw new UsageError(`"--subnet" ${formatPrefix(second)} is a second one of IPv${family}; give one of each family`);
  }
  return {
    name,
    subnets,
    isIsolated: given.switches.has("isolate"),
    labels: labels.length === 0 ? {} : Object.fromEntries(keyChangeOf("label", labels, given).set),
    ...(rate === undefined ? {} : { rate: Number(parseBandwidthQuantity("--rate", rate)) }),
  };
}

function subnetOf(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix !== undefined) return prefix;
  const address = parseInterfaceAddress(text);
  const meant = address && formatPrefix(prefixAround(address.address, address.length));
  const fix = meant === undefined ? "use a subnet such as 10.66.0.0/24" : `the subnet of this address is ${meant}`;
  throw new UsageError(`"--subnet" is ${quoted(text)}: ${fix}`);
}

function exists(name: string, file: string): PluginError {
  return new PluginError("resource-exists", `Cannot create network ${quoted(name)}: ${quoted(file)} is one`, {
    details: `choose another name, or delete that one with "${identity.adminTool} network delete ${name}"`,
  });
}

/** What a first container would miss. What exists stays as it is. */
async function prepare(store: Datastore, kind: DatastoreSettings["kind"], context: Means): Promise<void> {
  const { state, lockedBy } = await initialize(store, context);
  if (state === "locked") throw new DatastoreLocked(lockedBy ?? "others");
  await registerIfMissing(store, kind, context);
}

async function poolsNamed(store: Datastore, names: readonly string[]): Promise<WantedNetwork["pools"]> {
  if (names.length === 0) return [];
  const all = (await findPools(store)).readable;
  return names.map((name) => {
    const pool = all.find((each) => each.name === name);
    if (pool !== undefined) return { name, family: pool.cidr.network.family };
    const known = all.map((each) => each.name).join(", ");
    const details =
      known === "" ? "there is no pool: give the network a subnet of its own with --subnet" : `pools are: ${known}`;
    throw new PluginError("resource-missing", `Cannot use pool ${quoted(name)}: it does not exist`, { details });
  });
}

interface Made {
  readonly given: GivenResource;
  readonly revision: string;
}

/** A container that starts before there is a policy table is refused, and podman does not try again. */
async function waitForProtection(context: Means): Promise<void> {
  for (let waited = 0; waited < LONGEST_WAIT; waited += LOOK_AGAIN) {
    const { agent, hasPolicyTable } = await context.readAgentFacts();
    if (hasPolicyTable) return;
    if (agent !== "running") break;
    await context.wait(LOOK_AGAIN);
  }
  const reason = `the node agent (${identity.nodeAgent}) has not made a policy table; see "${identity.adminTool} node check"`;
  context.stderr(`Warning: containers of this network do not start, since nothing isolates them yet: ${reason}\n`);
}

const LONGEST_WAIT = 10_000;
const LOOK_AGAIN = 200;

/** All of them, or none. */
async function writeAll(store: Datastore, documents: readonly object[], context: Means): Promise<readonly Made[]> {
  const all = decodeManifests([{ place: "the network", text: JSON.stringify(documents) }]);
  const made: Made[] = [];
  try {
    for (const given of all) {
      for (const warning of (await given.kind.warnings?.(given.resource, context).catch(() => [])) ?? []) {
        context.stderr(`warning: ${warning}\n`);
      }
      const options = { mode: "create", now: () => context.now(), uuid: () => context.uuid() } as const;
      made.push({ given, revision: (await writeResource(store, given, options)).revision });
    }
    return made;
  } catch (failure) {
    await takeBack(store, made, context);
    throw failure;
  }
}

/** Nobody has used them: no list names them yet. */
async function takeBack(store: Datastore, made: readonly Made[], { stderr }: Means): Promise<void> {
  for (const { given, revision } of made.toReversed()) {
    try {
      await store.commit([{ kind: "delete", key: given.kind.key(given.name), revision }]);
    } catch (failure) {
      stderr(`Warning: ${referenceText(given.kind, given.name)} is left: ${describeFailure(failure)}\n`);
    }
  }
}
