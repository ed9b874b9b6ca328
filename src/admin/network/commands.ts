import { identity } from "../../identity.ts";
import { loadOnce } from "../../load-once.ts";
import type { Command } from "../main/command.ts";

export const networkCreate: Command = {
  kind: "command",
  name: "create",
  summary:
    "Create a network of containers on this host: its pools, its network config and, if it is isolated, its profile",
  description: [
    "podman 4 and other container runtimes that read /etc/cni/net.d find the network there: podman run --network NAME.",
    "The datastore, the log and the chained plugins are those of the network that this host has already. The first network",
    `uses the embedded datastore, which is created, and this host is registered in it (see "${identity.adminTool} node register").`,
    "Each subnet becomes a pool that only this network uses. Without a subnet and a pool, addresses are of any pool.",
    "Containers of other networks do not reach those of an isolated network. The host, the outside and its published ports are",
    "not affected; the node agent has to run. A policy that selects a container decides instead of the isolation.",
    "If a step fails, nothing is left of the network.",
  ].join("\n"),
  operands: "NAME",
  options: [
    { name: "subnet", value: "CIDR", repeats: true, summary: "Its addresses, one subnet of IPv4, of IPv6 or of each" },
    { name: "pool", value: "NAME", repeats: true, summary: "A pool that exists, which may serve other networks too" },
    { name: "isolate", summary: "Keep containers of other networks out" },
    {
      name: "rate",
      value: "BITS",
      summary: "Limit each container to so many bits per second, in each direction: 10M, 500k",
    },
    { name: "label", value: "KEY=VALUE", repeats: true, summary: "Label every container of the network, for policies" },
  ],
  examples: [
    { command: "network create web --subnet 10.66.0.0/24", does: "Create a network with its own addresses" },
    {
      command: "network create db --subnet 10.67.0.0/24 --subnet fd00:67::/64 --isolate",
      does: "The same with both families, closed to other networks",
    },
    {
      command: "network create slow --pool web --rate 10M --label tier=batch",
      does: "A second network over the same addresses, with a limited rate and a label",
    },
  ],
  load: loadOnce(() => import("./create.ts")),
};

export const networkList: Command = {
  kind: "command",
  name: "list",
  summary: "List the networks of this host with their pools and the number of their containers",
  examples: [{ command: "network list", does: "List the networks that run this product" }],
  load: loadOnce(() => import("./list.ts")),
};

export const networkShow: Command = {
  kind: "command",
  name: "show",
  summary: "Show a network of this host: its pools, its file, and the containers in it",
  operands: "NAME",
  examples: [{ command: "network show web", does: "Show a network" }],
  load: loadOnce(() => import("./list.ts")),
};

export const networkDelete: Command = {
  kind: "command",
  name: "delete",
  summary: "Delete networks of this host, with the pools and profiles that were made for them",
  description: [
    "A network with containers is not deleted, nor a pool of it whose addresses are in use. Pools that existed before it stay.",
    "What fails midway is finished by the next call.",
  ].join("\n"),
  operands: "NAME…",
  examples: [{ command: "network delete web", does: "Delete a network without containers" }],
  load: loadOnce(() => import("./delete.ts")),
};
