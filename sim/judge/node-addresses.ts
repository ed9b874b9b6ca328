/**
 * The address of a machine never leads to a container, on no host: whoever writes annotations on their own pods takes over
 * nothing. That the addresses of other pods lead to those pods, the packets show at rest.
 */
import { formatAddress, isSameAddress } from "../../src/ip/address.ts";
import { formatPrefix } from "../../src/ip/prefix.ts";
import type { Invariant } from "./invariant.ts";
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

/** A network card, and not what the product or the kernel itself has made. */
function isWire(root: ReturnType<typeof machinesIn>[number]["root"], index: number): boolean {
  const link = root.links.get(index);
  return link !== undefined && link.kind === undefined && link.name !== "lo";
}
