/**
 * No address twice: not in the records, where no order of writes and no crash may leave anything corrupt, and not among
 * the containers that run, also those of pods that end or that the API has forgotten. And none that runs loses its address:
 * its block says that it is the container's.
 */
import { formatAddress } from "../../src/ip/address.ts";
import { findProblems } from "../../src/ipam/invariants.ts";
import type { ModelAddress } from "../kernel/model.ts";
import { type Invariant, type LivingAttachment, runningAttachments } from "./invariant.ts";
import { type IpamState, ipamReader, isUsedBy } from "./ipam-state.ts";

/** What somebody who may make pools as they like brings about without a fault of the product. */
const OF_USERS = ["pools-overlap"];
/**
 * Where records are written one at a time, an ADD that has read a pool before it was disabled can write its block after
 * the pool was deleted: the admin tool waits for such writers a while, and cannot do more. Where all changes are written
 * at once, such an ADD fails.
 */
const OF_SINGLE_WRITES = ["allocation-outside-pools"];

export function soundRecords(read = ipamReader()): Invariant {
  let last: IpamState | undefined;
  let found: readonly string[] = [];
  return {
    name: "sound records",
    when: "after each step",
    check({ records, atomicity }) {
      const excused = atomicity === "all changes" ? OF_USERS : [...OF_USERS, ...OF_SINGLE_WRITES];
      const state = read(records);
      if (state === last) return found;
      last = state;
      found = findProblems(state)
        .filter(({ kind, severity }) => severity === "corrupt" && !excused.includes(kind))
        .map(({ message }) => message);
      return found;
    },
  };
}

export function noAddressTwice(): Invariant {
  return {
    name: "no address twice",
    when: "after each step",
    check(world) {
      const holder = new Map<string, LivingAttachment>();
      return runningAttachments(world).flatMap((attachment) =>
        attachment.addresses.flatMap((address) => {
          const other = holder.get(address);
          holder.set(address, attachment);
          return other === undefined ? [] : [`${title(other)} and ${title(attachment)} both have ${address}`];
        }),
      );
    },
  };
}

/** No two living containers have an address in common, whatever the results of their ADDs said. */
export function noAddressTwiceInKernels(): Invariant {
  let changes = -1;
  let found: readonly string[] = [];
  return {
    name: "no address twice in kernels",
    when: "after each step",
    check(world) {
      const living = runningAttachments(world).flatMap((attachment) => {
        const { host } = world.nodes.get(attachment.node) ?? {};
        const namespace = attachment.netnsPath === undefined ? undefined : host?.namespaceAt(attachment.netnsPath);
        return namespace === undefined ? [] : [{ attachment, namespace }];
      });
      const now = living.reduce((sum, { namespace }) => sum + 1 + namespace.changes, 0);
      if (now === changes) return found;
      changes = now;
      const holder = new Map<string, LivingAttachment>();
      found = living.flatMap(({ attachment, namespace }) =>
        namespace.addresses.filter(isGlobal).flatMap(({ address }) => {
          const text = formatAddress(address);
          const other = holder.get(text);
          holder.set(text, attachment);
          return other === undefined || other === attachment
            ? []
            : [`${title(other)} and ${title(attachment)} both have ${text} in their namespaces`];
        }),
      );
      return found;
    },
  };
}

const GLOBAL_SCOPE = 0;

function isGlobal({ scope }: ModelAddress): boolean {
  return scope === GLOBAL_SCOPE;
}

export function noLivingAddressFreed(read = ipamReader()): Invariant {
  return {
    name: "no living address freed",
    when: "after each step",
    check(world) {
      const { holdings } = read(world.records);
      return runningAttachments(world).flatMap((attachment) =>
        attachment.addresses.flatMap((address) => {
          const held = holdings.get(address);
          if (held === undefined) return [`${title(attachment)} has ${address}, which its block calls free`];
          if (isUsedBy(held, attachment.containerId)) return [];
          return [`${title(attachment)} has ${address}, which is recorded for "${held.handle}"`];
        }),
      );
    },
  };
}

function title({ pod: { namespace, name }, containerId, node }: LivingAttachment): string {
  return `pod ${namespace}/${name} (container ${containerId} on ${node})`;
}
