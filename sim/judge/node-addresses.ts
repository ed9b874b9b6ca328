/**
 * The address of a machine never leads to a container, on no host, and that of a container never to another container of
 * another pod: whoever writes annotations on their own pods takes over nothing.
 */
import { formatAddress, isSameAddress } from "../../src/ip/address.ts";
import { formatPrefix } from "../../src/ip/prefix.ts";
import { hostInterfaceName } from "../../src/model/host-interface-name.ts";
import { NAMESPACE_ATTRIBUTE } from "../../src/model/ipam-block.ts";
import { isWaiting } from "../../src/model/kept-address.ts";
import {
  type Invariant,
  runningAttachments,
  type WorldAttachment,
  type WorldHost,
  type WorldNode,
} from "./invariant.ts";
import { type Holding, ipamReader } from "./ipam-state.ts";
import { machinesIn } from "./stations.ts";

export function noNodeAddressLeadsToPod(): Invariant {
  /** By host: how often its kernel had changed, and what was found then. */
  const known = new WeakMap<object, { readonly changes: number; readonly found: readonly string[] }>();
  return {
    name: "no node address leads to a pod",
    when: "after each step",
    check(world) {
      const machines = machinesIn(world);
      return machines.flatMap(({ name, root }) => {
        const before = known.get(root);
        if (before?.changes === root.changes) return before.found;
        const found = root.routes.flatMap(({ destination, linkIndex }) => {
          if (linkIndex === undefined || root.links.get(linkIndex)?.kind !== "veth") return [];
          const owner = machines.find((machine) =>
            machine.root.addresses.some(
              (own) => isWire(machine.root, own.linkIndex) && isSameAddress(own.address, destination.network),
            ),
          );
          if (owner === undefined) return [];
          const title = `${formatPrefix(destination)} to "${root.links.get(linkIndex)?.name}"`;
          return [`${name} has a route ${title}, but ${formatAddress(destination.network)} is ${owner.name}'s`];
        });
        known.set(root, { changes: root.changes, found });
        return found;
      });
    },
  };
}

export function noAddressLeadsToAnotherPod(read = ipamReader()): Invariant {
  return {
    name: "no address leads to another pod",
    when: "after each step",
    check(world) {
      const holders = new Map<string, PodName>([
        ...[...read(world.records).holdings.values()].flatMap(waitingFor),
        ...runningAttachments(world).flatMap(({ addresses, pod }) =>
          addresses.map((address) => [address, pod] as const),
        ),
      ]);
      return Array.from(world.nodes.values()).flatMap((node) =>
        routesToPods(node).flatMap(({ address, link, pods }) => {
          const holder = holders.get(address);
          // One whose ADD has not ended may have had the address before.
          const isJudged = pods.length > 0 && pods.every(({ state }) => state === "attached");
          if (holder === undefined || !isJudged || pods.some((pod) => pod.addresses.includes(address))) return [];
          return [
            `${node.name} leads ${address} to "${link}", but it belongs to pod ${holder.namespace}/${holder.name}`,
          ];
        }),
      );
    },
  };
}

/** The pod that the address waits for, if it is a kept one. */
function waitingFor(holding: Holding): readonly (readonly [address: string, pod: PodName])[] {
  const { [NAMESPACE_ATTRIBUTE]: namespace, pod: name } = holding.secondary;
  if (!isWaiting({ handleId: holding.handle, secondary: holding.secondary })) return [];
  return namespace === undefined || name === undefined ? [] : [[holding.address, { namespace, name }]];
}

type PodName = Pick<WorldAttachment["pod"], "namespace" | "name">;

/** `pods`: the containers of the pod that the link is of. */
function routesToPods({ attachments, host }: WorldNode) {
  if (host === undefined) return [];
  const byLink = Map.groupBy(attachments.values(), linkOf);
  return routesToLinks(host.root).map((route) => ({ ...route, pods: byLink.get(route.link) ?? [] }));
}

interface RouteToLink {
  readonly address: string;
  readonly link: string;
}

/** By host: how often its kernel had changed, and its routes then. */
const routes = new WeakMap<object, { readonly changes: number; readonly found: readonly RouteToLink[] }>();

function routesToLinks(root: WorldHost["root"]): readonly RouteToLink[] {
  const before = routes.get(root);
  if (before?.changes === root.changes) return before.found;
  const found = root.routes.flatMap(({ destination, linkIndex }) => {
    const link = linkIndex === undefined ? undefined : root.links.get(linkIndex);
    return link?.kind === "veth" ? [{ address: formatAddress(destination.network), link: link.name }] : [];
  });
  routes.set(root, { changes: root.changes, found });
  return found;
}

const links = new WeakMap<WorldAttachment["pod"], string>();

function linkOf({ pod, containerId }: WorldAttachment): string {
  const known = links.get(pod) ?? hostInterfaceName({ containerId, ifname: "eth0", pod });
  links.set(pod, known);
  return known;
}

/** A network card, and not what the product or the kernel itself has made. */
function isWire(root: ReturnType<typeof machinesIn>[number]["root"], index: number): boolean {
  const link = root.links.get(index);
  return link !== undefined && link.kind === undefined && link.name !== "lo";
}
