/** What an update changes about sets: read and checked as a whole before anything changes. Pure, but for `applyTo`. */
import { MalformedMessage, malformedValue } from "../protocol/malformed-message.ts";
import type { SidecarSet, SidecarSetChange, SidecarUpdate } from "../protocol/sidecar-state.ts";
import { parseSetMember, type SetMember } from "./set-member.ts";
import type { SetMemberships, SetNames } from "./set-memberships.ts";

export interface SetChanges {
  /** Of all sets that exist after the changes. */
  readonly names: SetNames;
  readonly hasDeleted: boolean;
  applyTo(memberships: SetMemberships): void;
}

interface MemberChanges {
  readonly set: string;
  readonly add: readonly SetMember[];
  readonly remove: readonly SetMember[];
}

export function readSetChanges(sets: NonNullable<SidecarUpdate["sets"]>, known: SetNames): SetChanges {
  const names = new Set(known);
  /** Sets that are deleted or sent as a whole. */
  const emptied = new Set<string>();
  const members: MemberChanges[] = [];
  for (const [set, change] of Object.entries(sets)) {
    if (change === null || "members" in change) {
      if (names.delete(set)) emptied.add(set);
    } else if (!names.has(set)) throw new MalformedMessage(`sets.${set}`, "a set that is unknown cannot be changed");
    if (change === null) continue;
    names.add(set);
    members.push(readMembers(set, change));
  }
  return {
    names,
    hasDeleted: [...emptied].some((set) => !names.has(set)),
    applyTo(memberships) {
      memberships.removeSets(emptied);
      for (const { set, add, remove } of members) {
        for (const member of remove) memberships.remove(set, member);
        for (const member of add) memberships.add(set, member);
      }
    },
  };
}

function readMembers(set: string, change: SidecarSet | SidecarSetChange): MemberChanges {
  if ("members" in change) return { set, add: parse(change.members, `sets.${set}.members`), remove: [] };
  return {
    set,
    add: parse(change.add, `sets.${set}.add`),
    remove: parse(change.remove, `sets.${set}.remove`),
  };
}

function parse(texts: readonly string[], field: string): readonly SetMember[] {
  return texts.map((text, place) => {
    const member = parseSetMember(text);
    if (member === undefined) {
      throw malformedValue(`${field}[${place}]`, text, "an address, a network, an address with a port, or an identity");
    }
    return member;
  });
}
