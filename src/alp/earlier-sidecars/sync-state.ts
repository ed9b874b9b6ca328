/**
 * What one sidecar that speaks policy sync has been sent, and the messages that tell it the next state. No effects.
 *
 * The sidecar applies each message at once, and ends if a rule names a set that it does not have. So everything that new
 * rules need comes first; one message makes them valid, all at the same moment; what is no longer needed goes afterwards.
 *
 *   sets, accounts, policies ──> endpoint: these policies decide ──> policies, accounts, sets and members that are gone ──> in sync
 *
 * Policies are named after their content: one that is the same as before is not sent again. Sets of identities are labels of
 * service accounts. A set that rules use gets only changes of its members: if they are not known, it is sent under another
 * name, which the endpoint's new policies have, because a large one arrives in pieces.
 */
import { formatPrefix, lastAddress, type Prefix, parsePrefixOrAddress, singlePrefix } from "../../ip/prefix.ts";
import type { SidecarSet, SidecarSetChange, SidecarUpdate } from "../protocol/sidecar-state.ts";
import type { SidecarState } from "../state/sidecar-states.ts";
import { DENY_EVERYTHING, type FlatRule, flatRules, type NetList } from "./flat-rules.ts";
import {
  accountRemove,
  accountUpdate,
  encodeRule,
  endpointUpdate,
  inSync,
  policyRemove,
  policyUpdate,
  type SetKind,
  setChanges,
  setRemove,
  setUpdates,
} from "./sync-messages.ts";

/** Names of sets of identities begin with it. */
const IDENTITIES = "i_";
/** Clients of gRPC accept messages of at most 4 MB. */
const MOST_POLICY_BYTES = 1024 * 1024;

interface EncodedPolicies {
  /** By name. */
  readonly policies: ReadonlyMap<string, readonly Uint8Array[]>;
  /** In order. */
  readonly names: readonly string[];
  /** The sets of networks of their rules, by name. */
  readonly nets: ReadonlyMap<string, NetList>;
}

/** Before and after the message that makes new policies valid. */
interface SetMessages {
  readonly before: readonly Uint8Array[];
  readonly after: readonly Uint8Array[];
  /** The rules must name it again. */
  readonly isRenamed?: true;
}

export class SyncState {
  /** The policies of the pod are more than a sidecar of an earlier release can get: it denies everything. */
  isTooLarge = false;
  private names: readonly string[] = [];
  private nets: ReadonlySet<string> = new Set();
  private isInSync = false;
  /** Of the sets that have had a member. */
  private readonly kinds = new Map<string, SetKind>();
  /** Sets with a network that is sent as addresses: each may be a member for other reasons, too. */
  private readonly overlapping = new Set<string>();
  /** How often a set was sent under another name. */
  private readonly renamed = new Map<string, number>();
  /** The sets of identities that an account is in. */
  private readonly labels = new Map<string, Set<string>>();

  /** `workload`: `NAMESPACE/POD`. */
  constructor(private readonly workload: string) {}

  /** The messages for an update that leads to this state. */
  messagesFor({ evaluation, policies, sets = {} }: SidecarUpdate, state: SidecarState): readonly Uint8Array[] {
    const changes = Object.entries(sets);
    const ofSets = [
      ...changes.flatMap(([name, change]) => (change === null ? [] : [this.setMessages(name, change, state)])),
      // Last: what is said then about an account is valid last.
      ...changes.flatMap(([name, change]) => (change === null ? [this.removeSet(name)] : [])),
    ];
    const hasChanged = evaluation !== undefined || policies !== undefined || ofSets.some((each) => each.isRenamed);
    const messages = [
      ...ofSets.flatMap(({ before }) => before),
      ...(hasChanged ? this.policyMessages(state) : []),
      ...ofSets.flatMap(({ after }) => after),
      ...(this.isInSync ? [] : [inSync()]),
    ];
    this.isInSync = true;
    return messages;
  }

  private setMessages(name: string, change: SidecarSet | SidecarSetChange, state: SidecarState): SetMessages {
    if (name.startsWith(IDENTITIES)) return { before: this.identityMessages(name, change), after: [] };
    const members = () => state.sets.get(name)?.members() ?? [];
    if ("members" in change) return this.wholeSet(name, change.members);
    // It was empty.
    if (!this.kinds.has(name)) return this.wholeSet(name, [...members()]);
    if (change.add.some(becomesAddresses)) this.overlapping.add(name);
    const removed = new Set(change.remove.flatMap(memberTexts));
    if (this.overlapping.has(name) && removed.size > 0) keepMembers(removed, members());
    return {
      before: setChanges(this.nameOf(name), change.add.flatMap(memberTexts), []),
      after: setChanges(this.nameOf(name), [], [...removed]),
    };
  }

  private wholeSet(name: string, members: readonly string[]): SetMessages {
    const known = this.kinds.get(name);
    const kind = kindOf(members) ?? known;
    if (kind !== undefined) this.kinds.set(name, kind);
    if (members.some(becomesAddresses)) this.overlapping.add(name);
    const update = () => setUpdates(this.nameOf(name), kind ?? "address", members.flatMap(memberTexts));
    if (known === undefined) return { before: update(), after: [] };
    const after = [setRemove(this.nameOf(name))];
    this.renamed.set(name, (this.renamed.get(name) ?? 0) + 1);
    return { before: update(), after, isRenamed: true };
  }

  private nameOf(set: string): string {
    const count = this.renamed.get(set);
    return count === undefined ? set : `${set}_${count}`;
  }

  private removeSet(name: string): SetMessages {
    if (name.startsWith(IDENTITIES)) return { before: [], after: this.identityMessages(name, { members: [] }) };
    const after = [setRemove(this.nameOf(name))];
    this.kinds.delete(name);
    this.overlapping.delete(name);
    this.renamed.delete(name);
    return { before: [], after };
  }

  private identityMessages(name: string, change: SidecarSet | SidecarSetChange): readonly Uint8Array[] {
    const changed = new Set<string>();
    const set = (account: string, isMember: boolean) => {
      const labels = this.labels.get(account) ?? new Set();
      if (labels.has(name) === isMember) return;
      if (isMember) labels.add(name);
      else labels.delete(name);
      this.labels.set(account, labels);
      changed.add(account);
    };
    if ("members" in change) {
      const members = new Set(change.members);
      for (const account of [...this.labels.keys(), ...members]) set(account, members.has(account));
    } else {
      for (const account of change.remove) set(account, false);
      for (const account of change.add) set(account, true);
    }
    return Array.from(changed, (account) => this.accountMessage(account));
  }

  private accountMessage(account: string): Uint8Array {
    const labels = this.labels.get(account) ?? new Set();
    if (labels.size > 0) return accountUpdate(account, labels);
    this.labels.delete(account);
    return accountRemove(account);
  }

  private policyMessages({ evaluation, policies }: SidecarState): readonly Uint8Array[] {
    const rules = flatRules(evaluation, policies);
    this.isTooLarge = rules === undefined;
    const now = encodePolicies(rules ?? DENY_EVERYTHING, (set) => this.nameOf(set));
    const [names, nets] = [this.names, this.nets];
    if (this.isInSync && Bun.deepEquals(names, now.names)) return [];
    this.names = now.names;
    this.nets = new Set(now.nets.keys());
    const before = new Set(names);
    const gone = [...before].filter((name) => !now.policies.has(name));
    return [
      ...[...now.nets].flatMap(([name, list]) =>
        nets.has(name) ? [] : setUpdates(name, "address", list.flatMap(memberTexts)),
      ),
      ...[...now.policies].flatMap(([name, encoded]) => (before.has(name) ? [] : [policyUpdate(name, encoded)])),
      endpointUpdate(this.workload, now.names),
      ...gone.map(policyRemove),
      ...[...nets].filter((name) => !now.nets.has(name)).map(setRemove),
    ];
  }
}

function encodePolicies(lists: readonly (readonly FlatRule[])[], nameOf: (set: string) => string): EncodedPolicies {
  const policies = new Map<string, readonly Uint8Array[]>();
  const nets = new Map<string, NetList>();
  const known = new Map<NetList, string>();
  const ofNets = (list: NetList) => {
    const name = known.get(list) ?? `n_${digestOf(list)}`;
    known.set(list, name);
    nets.set(name, list);
    return name;
  };
  const pieces = lists.flatMap((rules) => piecesOf(rules.map((rule) => encodeRule(rule, { ofNets, of: nameOf }))));
  const names = pieces.map((rules) => {
    const name = `p_${digestOf(rules)}`;
    policies.set(name, rules);
    return name;
  });
  return { policies, names, nets };
}

function piecesOf(rules: readonly Uint8Array[]): readonly (readonly Uint8Array[])[] {
  const pieces: Uint8Array[][] = [];
  let size = MOST_POLICY_BYTES;
  for (const rule of rules) {
    if (size + rule.length > MOST_POLICY_BYTES) {
      pieces.push([]);
      size = 0;
    }
    pieces.at(-1)?.push(rule);
    size += rule.length;
  }
  return pieces;
}

function digestOf(parts: readonly (Uint8Array | string)[]): string {
  const hash = new Bun.CryptoHasher("sha256");
  for (const part of parts) hash.update(`${part.length} `).update(part);
  return hash.digest("hex").slice(0, 32);
}

/** `undefined` of an empty set. */
function kindOf([first]: readonly string[]): SetKind | undefined {
  if (first === undefined) return undefined;
  return first.includes(" ") ? "port" : "address";
}

/** `ADDRESS 6 PORT`, an address or a network, as policy sync writes it. */
function memberTexts(member: string): readonly string[] {
  const [address = "", , port] = member.split(" ");
  if (port !== undefined) return [`${address},tcp:${port}`];
  const prefix = parsePrefixOrAddress(address);
  if (prefix === undefined)
    throw new Error(`member ${JSON.stringify(member)} of a compiled set is not an address or network`);
  return addressesOf(prefix).map(formatPrefix);
}

/** Without what these members, or addresses of them, still are. */
function keepMembers(texts: Set<string>, members: Iterable<string>): void {
  for (const member of members) {
    if (!member.includes("/")) texts.delete(`${member}/${member.includes(":") ? 128 : 32}`);
    else if (becomesAddresses(member)) for (const text of memberTexts(member)) texts.delete(text);
    else texts.delete(member);
  }
}

/** A network that is not found in a set. */
function becomesAddresses(member: string): boolean {
  const slash = member.indexOf("/");
  return slash >= 0 && Number(member.slice(slash + 1)) > SMALLEST[member.includes(":") ? 6 : 4];
}

/** The last part of an address is a set of single addresses there: networks that are smaller are never found in it. */
const SMALLEST = { 4: 24, 6: 120 } as const;

function addressesOf(prefix: Prefix): readonly Prefix[] {
  const { network, length } = prefix;
  if (length <= SMALLEST[network.family]) return [prefix];
  const count = Number(lastAddress(prefix).value - network.value) + 1;
  return Array.from({ length: count }, (_, index) =>
    singlePrefix({ ...network, value: network.value + BigInt(index) }),
  );
}
