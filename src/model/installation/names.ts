/** The fields of an Installation whose names contain the product's name, and what the program calls them. */
import { identity } from "../../identity.ts";

const { product } = identity;

/** `vendorNetwork`. */
export const NETWORK_FIELD = `${product}Network`;
/** `vendorNodeDaemonSet`. */
export const NODE_FIELD = `${product}NodeDaemonSet`;
/** `vendorKubeControllersDeployment`. */
export const CONTROLLERS_FIELD = `${product}KubeControllersDeployment`;

const WIRE_NAMES = {
  network: NETWORK_FIELD,
  nodeDaemonSet: NODE_FIELD,
  controllersDeployment: CONTROLLERS_FIELD,
} as const;

/** The same members under the names that users write. */
export function withWireNames(members: object): Record<string, unknown> {
  return renamed(members, new Map(Object.entries(WIRE_NAMES)));
}

/** The same members under the names that the program uses. */
export function withOwnNames(members: object): Record<string, unknown> {
  return renamed(members, new Map(Object.entries(WIRE_NAMES).map(([own, wire]) => [wire, own])));
}

function renamed(members: object, names: ReadonlyMap<string, string>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(members).map(([name, value]) => [names.get(name) ?? name, value]));
}
