/** `network list` and `network show`: the networks of this host, with their pools and the containers in them. */
import { isJsonObject } from "../../cni/json.ts";
import type { Datastore } from "../../datastore/datastore.ts";
import { describeFailure } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatPrefix } from "../../ip/prefix.ts";
import { askedPools } from "../../ipam/pools.ts";
import { isolatedProfileSpec } from "../../model/network-profile.ts";
import { quoted } from "../../quote.ts";
import { findPools } from "../ipam/pools.ts";
import { PROFILE_ROW } from "../kinds/profile.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { DatastoreAccess } from "../main/context.ts";
import { findOne } from "../resources/stored.ts";
import { stdoutPage } from "../terminal/page.ts";
import { formatRows, formatTable } from "../terminal/table.ts";
import { containersIn, type HostNetwork, networkNamed, readHostNetworks, withDatastoreOf } from "./host-networks.ts";

interface ShownNetwork {
  readonly name: string;
  readonly file: string;
  /** Empty: any pool of the datastore. */
  readonly pools: readonly { readonly name: string; readonly cidr: string }[];
  readonly isIsolated: boolean;
  readonly containers: readonly string[];
}

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
  const [name, ...others] = given.operands;
  if (others.length > 0) throw new UsageError(`One network is shown at a time; remove ${quoted(others.join(" "))}`);
  const all = await readHostNetworks(context);
  const wanted = name === undefined ? all.filter(({ entry }) => entry !== undefined) : [networkNamed(name, all)];
  const shown: ShownNetwork[] = [];
  let code: ExitCode = EXIT_OK;
  for (const network of wanted) {
    try {
      shown.push(await withDatastoreOf(network, context, (store) => facts(store, network)));
    } catch (failure) {
      context.stderr(`Cannot show network ${quoted(network.name)}: ${describeFailure(failure)}\n`);
      code = EXIT_FAILED;
    }
  }
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ networks: shown }, undefined, 2)}\n`);
  else context.stdout(name === undefined ? table(shown, context) : shown.map(details).join(""));
  return code;
}

async function facts(store: Datastore, { name, file, entry }: HostNetwork): Promise<ShownNetwork> {
  const { readable, unreadable } = await findPools(store);
  const ipam = entry?.["ipam"];
  const pools = ([4, 6] as const).flatMap((family) => {
    const asked = isJsonObject(ipam) ? ipam[`ipv${family}_pools`] : undefined;
    const texts = Array.isArray(asked) ? asked.map(String) : [];
    return texts.length === 0 ? [] : askedPools(readable, family, { asked: texts, unreadable });
  });
  const { readable: profiles } = await findOne(store, PROFILE_ROW, { name });
  return {
    ...{ name, file },
    pools: pools.map((pool) => ({ name: pool.name, cidr: formatPrefix(pool.cidr) })),
    isIsolated: profiles.some(({ resource }) => Bun.deepEquals(resource.spec, isolatedProfileSpec(name))),
    containers: await containersIn(store, name),
  };
}

function table(all: readonly ShownNetwork[], context: DatastoreAccess): string {
  if (all.length === 0) return `There is no network of this product on this host; create one: ${CREATE}\n`;
  const rows = all.map(({ name, pools, isIsolated, containers, file }) => [
    name,
    poolsText(pools),
    isIsolated ? "yes" : "no",
    String(containers.length),
    file,
  ]);
  return formatTable(["NAME", "POOLS", "ISOLATED", "CONTAINERS", "FILE"], rows, stdoutPage(context));
}

const CREATE = `${identity.adminTool} network create NAME --subnet 10.66.0.0/24`;

function poolsText(pools: ShownNetwork["pools"]): string {
  return pools.length === 0 ? "any" : pools.map(({ name, cidr }) => `${name} (${cidr})`).join(", ");
}

function details({ name, file, pools, isIsolated, containers }: ShownNetwork): string {
  const rows = [
    ["Name:", name],
    ["Pools:", poolsText(pools)],
    ["Isolated:", isIsolated ? "yes: containers of other networks do not reach its containers" : "no"],
    ["Containers:", containers.length === 0 ? "none" : containers.join(", ")],
    ["File:", file],
  ];
  return `${formatRows(rows, Number.POSITIVE_INFINITY).join("\n")}\n`;
}
