/** The endpoints of this node by key, by interface and by address. */
import { formatAddress } from "../../ip/address.ts";
import type { RoutedEndpoint } from "./local-routes.ts";

export class EndpointIndex {
  private readonly byKey = new Map<string, RoutedEndpoint>();
  private readonly byInterface = new Map<string, Set<RoutedEndpoint>>();
  private readonly byAddress = new Map<string, Set<RoutedEndpoint>>();

  /** `undefined` removes it. Returns the former one. */
  set(key: string, endpoint: RoutedEndpoint | undefined): RoutedEndpoint | undefined {
    const former = this.byKey.get(key);
    if (former !== undefined) this.remove(key, former);
    if (endpoint === undefined) return former;
    this.byKey.set(key, endpoint);
    include(this.byInterface, endpoint.interfaceName, endpoint);
    for (const address of endpoint.addresses) include(this.byAddress, formatAddress(address), endpoint);
    return former;
  }

  all(): readonly RoutedEndpoint[] {
    return [...this.byKey.values()];
  }

  ofInterface(name: string): readonly RoutedEndpoint[] {
    return [...(this.byInterface.get(name) ?? [])];
  }

  /** `address`: as `formatAddress` writes it. */
  ofAddress(address: string): readonly RoutedEndpoint[] {
    return [...(this.byAddress.get(address) ?? [])];
  }

  private remove(key: string, endpoint: RoutedEndpoint): void {
    this.byKey.delete(key);
    exclude(this.byInterface, endpoint.interfaceName, endpoint);
    for (const address of endpoint.addresses) exclude(this.byAddress, formatAddress(address), endpoint);
  }
}

function include<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([value]));
  else set.add(value);
}

function exclude<Value>(sets: Map<string, Set<Value>>, key: string, value: Value): void {
  const set = sets.get(key);
  set?.delete(value);
  if (set?.size === 0) sets.delete(key);
}
