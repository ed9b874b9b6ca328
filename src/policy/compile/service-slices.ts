/** The endpoints of services: a service is the sum of its slices. */
import { parseAddress } from "../../ip/address.ts";
import type { ServiceEndpoints } from "../../model/service-endpoints.ts";
import type { ServiceMember } from "./member-sets.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

export interface ServiceName {
  readonly namespace: string;
  readonly service: string;
}

export class ServiceSlices {
  private readonly slices = new Map<string, ServiceEndpoints>();
  private readonly keysOf = new Map<string, Set<string>>();

  /** `undefined`: the slice is gone. Returns the services that have changed. */
  put(key: string, slice: ServiceEndpoints | undefined): readonly ServiceName[] {
    const before = this.slices.get(key);
    if (before !== undefined) removeFrom(this.keysOf, textOf(before), key);
    if (slice === undefined) this.slices.delete(key);
    else {
      this.slices.set(key, slice);
      addTo(this.keysOf, textOf(slice), key);
    }
    const changed = [before, slice].filter((each) => each !== undefined);
    return [...new Map(changed.map((each) => [textOf(each), each])).values()];
  }

  membersOf(name: ServiceName): readonly ServiceMember[] {
    return [...(this.keysOf.get(textOf(name)) ?? [])]
      .flatMap((key) => this.slices.get(key) ?? [])
      .flatMap(({ addresses, ports }) =>
        addresses.flatMap((text) => parseAddress(text) ?? []).map((address) => ({ address, ports })),
      );
  }
}

function textOf({ namespace, service }: ServiceName): string {
  return `${namespace}/${service}`;
}
