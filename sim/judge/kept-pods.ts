/** The invariants of kept addresses (kept-addresses.ts) for the pods of whole clusters: until their `keepFor` is over, whatever becomes of them. */
import { parseAddress } from "../../src/ip/address.ts";
import { type Prefix, prefixContains } from "../../src/ip/prefix.ts";
import { keepHandle } from "../../src/model/kept-address.ts";
import { POOL } from "../../src/model/kinds.ts";
import { readStoredPool } from "../../src/model/stored-resources.ts";
import { NETWORK_NAME } from "../node/network-config.ts";
import { type Invariant, KEEP_SECONDS, type LivingAttachment, runningAttachments, type World } from "./invariant.ts";
import { ipamReader } from "./ipam-state.ts";
import { KeptAddressJudge, type ToldContainer } from "./kept-addresses.ts";
import { unchangedWhileSame } from "./records.ts";

export function keptAddressesStay(read = ipamReader()): Invariant {
  // Nothing but its pods is the owner of an address here, so none is ever gone; rests have an invariant of their own.
  const judge = new KeptAddressJudge({
    keepMilliseconds: KEEP_SECONDS * 1_000,
    graceMilliseconds: Number.POSITIVE_INFINITY,
    restOf: () => 0,
  });
  const readEnabled = unchangedWhileSame([POOL.prefix()], ({ key, value }) => {
    const { cidr, disabled } = readStoredPool(value, key);
    return disabled ? undefined : cidr;
  });
  const keeping = new Set<string>();
  return {
    name: "kept addresses stay",
    when: "after each step",
    check(world) {
      noteKeeping(world, keeping);
      return judge.check({
        isEnabled: isIn(readEnabled(world.records)),
        ...{ now: world.now, state: read(world.records), isWanted: () => true, isComing: () => false },
        containers: runningAttachments(world)
          .filter(({ pod }) => keeping.has(pod.uid))
          .map(toldContainer),
      });
    },
  };
}

function isIn(pools: readonly Prefix[]): (text: string) => boolean {
  return (text) => {
    const address = parseAddress(text);
    return address !== undefined && pools.some((cidr) => prefixContains(cidr, address));
  };
}

function noteKeeping({ pods }: World, keeping: Set<string>): void {
  for (const { uid, keeps } of pods.values()) if (keeps === true) keeping.add(uid);
}

function toldContainer({ containerId, addresses, pod: { namespace, name } }: LivingAttachment): ToldContainer {
  const handle = keepHandle({ network: NETWORK_NAME, namespace, identity: `pod/${name}` });
  return { id: containerId, handle, isKept: true, addresses };
}
