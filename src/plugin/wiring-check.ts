/**
 * Compares the kernel with a wiring plan and describes each difference. What
 * others added (routes, addresses, links) is not a difference. Pure.
 */
import { formatAddress, isSameAddress } from "../ip/address.ts";
import { formatMac } from "../ip/mac.ts";
import { formatInterfaceAddress, formatPrefix, isSamePrefix } from "../ip/prefix.ts";
import type { Link } from "../linux/rtnetlink/link.ts";
import type { PlannedNeighbour, PlannedRoute, PlannedSysctl, WiringPlan } from "./wiring-plan.ts";
import type { SideState, WiringState } from "./wiring-state.ts";

export function wiringDifferences(plan: WiringPlan, state: WiringState): readonly string[] {
  return [...hostDifferences(plan, state.host), ...containerDifferences(plan, state.container)];
}

function hostDifferences({ host, mtu }: WiringPlan, state: SideState): readonly string[] {
  const place = `host interface "${host.name}"`;
  if (state.link === undefined) return [`${place} is missing`];
  // A newer sandbox of the pod uses the name.
  if (state.link.alias !== host.mark) return [`${place} belongs to "${state.link.alias ?? "no owner"}"`];
  return [
    ...linkDifferences(place, state.link, { mac: host.mac, mtu }),
    ...neighbourDifferences(place, host.neighbours, state),
    ...routeDifferences(place, host.routes, state),
    ...sysctlDifferences("host", host.sysctls, state),
  ];
}

function containerDifferences({ container, mtu }: WiringPlan, state: SideState): readonly string[] {
  const place = `interface "${container.name}"`;
  if (state.link === undefined) return [`${place} is missing`];
  const lost = container.addresses.filter(
    (wanted) =>
      !state.addresses.some((each) => each.length === wanted.length && isSameAddress(each.address, wanted.address)),
  );
  return [
    ...linkDifferences(place, state.link, { mac: container.mac, mtu }),
    ...lost.map((address) => `${place} lacks address ${formatInterfaceAddress(address)}`),
    ...neighbourDifferences(place, container.neighbours, state),
    ...routeDifferences(place, container.routes, state),
    ...sysctlDifferences("container", container.sysctls, state),
  ];
}

function linkDifferences(
  place: string,
  link: Link,
  wanted: { readonly mac: Uint8Array; readonly mtu: number | undefined },
): readonly string[] {
  const differences: string[] = [];
  if (link.kind !== "veth") differences.push(`${place} is not a veth but ${link.kind ?? "a device"}`);
  if (!link.isUp) differences.push(`${place} is down`);
  if (!isSameMac(link.mac, wanted.mac)) {
    differences.push(`${place} has MAC ${formatMac(link.mac)} instead of ${formatMac(wanted.mac)}`);
  }
  if (wanted.mtu !== undefined && link.mtu !== wanted.mtu) {
    differences.push(`${place} has MTU ${link.mtu} instead of ${wanted.mtu}`);
  }
  return differences;
}

function neighbourDifferences(
  place: string,
  planned: readonly PlannedNeighbour[],
  state: SideState,
): readonly string[] {
  return planned
    .filter(
      (wanted) =>
        !state.neighbours.some(
          (each) => each.isPermanent && isSameAddress(each.address, wanted.address) && isSameMac(each.mac, wanted.mac),
        ),
    )
    .map(({ address }) => `${place} lacks neighbour entry ${formatAddress(address)}`);
}

function routeDifferences(place: string, planned: readonly PlannedRoute[], state: SideState): readonly string[] {
  return planned
    .filter((wanted) => !state.routes.some((route) => isServedBy(wanted, route)))
    .map(({ destination }) => `${place} lacks the route to ${formatPrefix(destination)}`);
}

/** The priority may differ: it depends on the container's other interfaces. */
function isServedBy(wanted: PlannedRoute, { destination, gateway, table }: PlannedRoute): boolean {
  if (!isSamePrefix(destination, wanted.destination)) return false;
  if (wanted.table !== undefined && table !== wanted.table) return false;
  if (wanted.gateway === undefined) return gateway === undefined;
  return gateway !== undefined && isSameAddress(gateway, wanted.gateway);
}

function sysctlDifferences(place: string, planned: readonly PlannedSysctl[], state: SideState): readonly string[] {
  return planned
    .filter(({ need, name, value }) => need === "required" && state.sysctls[name] !== value)
    .map(
      ({ name, value }) => `sysctl "${name}" of the ${place} is "${state.sysctls[name] ?? ""}" instead of "${value}"`,
    );
}

function isSameMac(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
