/** The default identity with another product name, wherever it occurs. */
import type { Identity } from "../../src/identity.ts";

export function renamedIdentity(model: Identity, name: string): Identity {
  // Names of interfaces have at most 15 characters.
  const interfaces = {
    interfacePrefix: name.slice(0, 4),
    vxlanDevice: `vxlan.${name.slice(0, 6)}`,
    vxlanDeviceIpv6: `vxlan-v6.${name.slice(0, 6)}`,
  };
  const renamed = JSON.stringify({ ...model, ...interfaces })
    .replaceAll(model.product, name)
    .replaceAll(model.title, name.charAt(0).toUpperCase() + name.slice(1))
    .replaceAll(model.product.toUpperCase(), name.toUpperCase());
  return JSON.parse(renamed) as Identity;
}
