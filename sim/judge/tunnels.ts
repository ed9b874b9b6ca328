/** What the record of a node names as the address of a tunnel is recorded for that tunnel: nobody else may get it. */
import type { Entry } from "../../src/datastore/datastore.ts";
import { NODE } from "../../src/model/kinds.ts";
import { recordedTunnelAddress, TUNNEL_ADDRESSES } from "../../src/model/tunnel-address.ts";
import type { Invariant } from "./invariant.ts";
import { ipamReader } from "./ipam-state.ts";

export function noTunnelAddressFreed(read = ipamReader()): Invariant {
  const known = new WeakMap<Entry, readonly NamedAddress[]>();
  let revision: string | undefined;
  let found: readonly string[] = [];
  return {
    name: "no tunnel address freed",
    when: "after each step",
    check({ records }) {
      if (records.revision === revision) return found;
      revision = records.revision;
      const { holdings } = read(records);
      const named = records.under(NODE.prefix()).flatMap((entry) => {
        const names = known.get(entry) ?? namedBy(entry);
        known.set(entry, names);
        return names;
      });
      found = named.flatMap(({ node, address, handle }) => {
        const held = holdings.get(address);
        if (held?.handle === handle) return [];
        const state = held === undefined ? "which its block calls free" : `which is recorded for "${held.handle}"`;
        return [`Node "${node}" names ${address} as the address of a tunnel, ${state}`];
      });
      return found;
    },
  };
}

interface NamedAddress {
  readonly node: string;
  readonly address: string;
  /** Of the tunnel. */
  readonly handle: string;
}

function namedBy({ key, value }: Entry): readonly NamedAddress[] {
  const { metadata, spec } = NODE.codec.read(value, key);
  const node = metadata.name;
  return TUNNEL_ADDRESSES.flatMap(({ kind, handlePrefix }) => {
    const address = recordedTunnelAddress(spec, kind);
    return address === undefined ? [] : { node, address, handle: `${handlePrefix}${node}` };
  });
}
