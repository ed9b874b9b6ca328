import { type Address, addressBits } from "./address.ts";
import type { Prefix } from "./prefix.ts";

/** Values by prefix. For prefixes of few different lengths, such as blocks: those that overlap a prefix are found without a search. */
export class PrefixIndex<Value> {
  private readonly groups = new Map<string, SameLength<Value>>();

  get({ network, length }: Prefix): Value | undefined {
    return this.groups.get(groupOf(network, length))?.values.get(network.value);
  }

  set({ network, length }: Prefix, value: Value): void {
    const name = groupOf(network, length);
    const group = this.groups.get(name) ?? { family: network.family, length, values: new Map() };
    group.values.set(network.value, value);
    this.groups.set(name, group);
  }

  delete({ network, length }: Prefix): void {
    const name = groupOf(network, length);
    const group = this.groups.get(name);
    group?.values.delete(network.value);
    if (group?.values.size === 0) this.groups.delete(name);
  }

  clear(): void {
    this.groups.clear();
  }

  values(): Iterable<Value> {
    return this.groups.values().flatMap(({ values }) => values.values());
  }

  /** Of those that contain the address, and are not longer than `longest`. */
  around(address: Address, longest: number = addressBits(address.family)): readonly Value[] {
    const found: Value[] = [];
    for (const { family, length, values } of this.groups.values()) {
      if (family !== address.family || length > longest) continue;
      const value = values.get(networkOf(address, length));
      if (value !== undefined) found.push(value);
    }
    return found;
  }

  /** Of those that contain the prefix or are inside it, and of the prefix itself. */
  overlapping({ network, length }: Prefix): readonly Value[] {
    const found: Value[] = [];
    for (const group of this.groups.values()) {
      if (group.family !== network.family) continue;
      if (group.length > length) {
        found.push(...inside(group, { network, length }));
        continue;
      }
      const value = group.values.get(networkOf(network, group.length));
      if (value !== undefined) found.push(value);
    }
    return found;
  }
}

interface SameLength<Value> {
  readonly family: Address["family"];
  readonly length: number;
  /** By the number of the network. */
  readonly values: Map<bigint, Value>;
}

function* inside<Value>({ family, length, values }: SameLength<Value>, around: Prefix): Generator<Value> {
  const count = 1n << BigInt(length - around.length);
  if (count > BigInt(values.size)) {
    for (const [value, found] of values) {
      if (networkOf({ family, value }, around.length) === around.network.value) yield found;
    }
    return;
  }
  const step = 1n << hostBits(family, length);
  for (let index = 0n; index < count; index += 1n) {
    const found = values.get(around.network.value + index * step);
    if (found !== undefined) yield found;
  }
}

function groupOf({ family }: Address, length: number): string {
  return `${family} ${length}`;
}

function networkOf({ family, value }: Address, length: number): bigint {
  const bits = hostBits(family, length);
  return (value >> bits) << bits;
}

function hostBits(family: Address["family"], length: number): bigint {
  return BigInt(addressBits(family) - length);
}
