/** The default identity with another product name, wherever it occurs. */
import type { Identity } from "../../src/identity.ts";

export function renamedIdentity(model: Identity, name: string): Identity {
  const renamed = JSON.stringify({ ...model, interfacePrefix: name.slice(0, 4) })
    .replaceAll(model.product, name)
    .replaceAll(model.title, name.charAt(0).toUpperCase() + name.slice(1))
    .replaceAll(model.product.toUpperCase(), name.toUpperCase());
  return JSON.parse(renamed) as Identity;
}
