/**
 * Deletes a network of containers: the pools and the profile that were made for it, then its network list. The list goes last,
 * so that a deletion that stopped midway is finished by the next.
 */
import { listed } from "../../counted.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { quoted } from "../../quote.ts";
import { deleteOne } from "../delete/delete.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { POOL_ROW } from "../kinds/pool.ts";
import { PROFILE_ROW } from "../kinds/profile.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Clock, DatastoreAccess } from "../main/context.ts";
import { referenceText } from "../resources/reference.ts";
import { findAll } from "../resources/stored.ts";
import { containersIn, type HostNetwork, networkNamed, readHostNetworks, withDatastoreOf } from "./host-networks.ts";
import { OF_NETWORK_LABEL } from "./plan-network.ts";

const SHOWN_CONTAINERS = 10;

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  if (given.operands.length === 0) throw new UsageError("The name of the network is required");
  const networks = await readHostNetworks(context);
  const all = given.operands.map((name) => networkNamed(name, networks));
  for (const network of all) {
    const lines = await withDatastoreOf(network, context, (store) =>
      deleteResources(store, network, { context, given }),
    );
    await context.removeFile(network.file);
    context.stdout([...lines, `network ${network.name} deleted`, ""].join("\n"));
  }
  return EXIT_OK;
}

interface Deleting {
  readonly context: DatastoreAccess & Clock;
  readonly given: Given;
}

async function deleteResources(
  store: Datastore,
  { name }: HostNetwork,
  deleting: Deleting,
): Promise<readonly string[]> {
  const connected = await containersIn(store, name);
  if (connected.length > 0) {
    throw new PluginError(
      "resource-in-use",
      `Cannot delete network ${quoted(name)}: containers are connected to it: ${listed(connected, SHOWN_CONTAINERS)}`,
      { details: "remove or disconnect them first" },
    );
  }
  const lines: string[] = [];
  for (const kind of MADE_FOR_NETWORKS) {
    const { readable } = await findAll(store, kind);
    const own = readable.filter(({ resource: { metadata } }) => isMadeFor(name, metadata));
    for (const { resource } of own) {
      const target = { kind, name: { name: resource.metadata.name } };
      const { action, note } = await deleteOne(store, target, deleting);
      lines.push(`${referenceText(kind, target.name)} ${action}${note === undefined ? "" : `: ${note}`}`);
    }
  }
  return lines;
}

const MADE_FOR_NETWORKS: readonly AdminKind[] = [POOL_ROW, PROFILE_ROW];

function isMadeFor(network: string, { labels = {} }: { readonly labels?: Readonly<Record<string, string>> }): boolean {
  return labels[OF_NETWORK_LABEL] === network;
}
