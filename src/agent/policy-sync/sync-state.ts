/**
 * What one sidecar that speaks policy sync has been sent, and the messages that tell it the next state. No effects.
 *
 * The sidecar applies each message at once, and ends if a rule names a set that it does not have. So everything that new
 * rules need comes first; one message makes them valid, all at the same moment; what is no longer needed goes afterwards.
 *
 *   sets, accounts, policies ──> endpoint: these policies decide ──> policies, accounts and sets that are gone ──> in sync
 *
 * Policies are named after their content: one that is the same as before is not sent again. Sets of identities are labels of
 * service accounts.
 */
import { formatPrefix, lastAddress, type Prefix, parsePrefixOrAddress, singlePrefix } from "../../ip/prefix.ts";
import type { SidecarSet, SidecarSetChange, SidecarUpdate } from "../../policy/requests/sidecar-state.ts";
import type { SidecarState } from "../../policy/sidecar-state/sidecar-states.ts";
import { type FlatRule, flatRules } from "./flat-rules.ts";
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

interface SentPolicies {
  /** By name, in order. */
  readonly policies: ReadonlyMap<string, readonly Uint8Array[]>;
  readonly names: readonly string[];
  /** The sets of networks of their rules, by name. */
  readonly nets: ReadonlyMap<string, readonly string[]>;
}

const NO_POLICIES: SentPolicies = { policies: new Map(), names: [], nets: new Map() };

export class SyncState {
  private policies = NO_POLICIES;
  private isInSync = false;
  /** Of the sets that have had a member. */
  private readonly kinds = new Map<string, SetKind>();
  /** Sets with a small network, whose addresses may be members for other reasons, too: they are always sent as a whole. */
  private readonly overlapping = new Set<string>();
  /** The sets of identities that an account is in. */
  private readonly labels = new Map<string, Set<string>>();

  /** `workload`: `NAMESPACE/POD`. */
  constructor(private readonly workload: string) {}

  /** The messages for an update that leads to this state. */
  messagesFor({ evaluation, policies, sets = {} }: SidecarUpdate, state: SidecarState): readonly Uint8Array[] {
    const changes = Object.entries(sets);
    const gone = changes.flatMap(([name, change]) => (change === null ? [name] : []));
    const messages = changes.flatMap(([name, change]) =>
      change === null ? [] : this.setMessages(name, change, state),
    );
    if (evaluation !== undefined || policies !== undefined) messages.push(...this.policyMessages(state));
    messages.push(...gone.flatMap((name) => this.removeSet(name)));
    if (!this.isInSync) messages.push(inSync());
    this.isInSync = true;
    return messages;
  }

  private setMessages(name: string, change: SidecarSet | SidecarSetChange, state: SidecarState): readonly Uint8Array[] {
    if (name.startsWith(IDENTITIES)) return this.identityMessages(name, change);
    const known = this.kinds.get(name);
    const added = "members" in change ? change.members : change.add;
    if (added.some((member) => memberTexts(member).length > 1)) this.overlapping.add(name);
    if ("members" in change || known === undefined || this.overlapping.has(name)) {
      const members = "members" in change ? change.members : [...(state.sets.get(name)?.members() ?? [])];
      const kind = kindOf(members);
      if (kind !== undefined) this.kinds.set(name, kind);
      return setUpdates(name, kind ?? "address", members.flatMap(memberTexts));
    }
    return setChanges(name, change.add.flatMap(memberTexts), change.remove.flatMap(memberTexts));
  }

  private removeSet(name: string): readonly Uint8Array[] {
    if (name.startsWith(IDENTITIES)) return this.identityMessages(name, { members: [] });
    this.kinds.delete(name);
    this.overlapping.delete(name);
    return [setRemove(name)];
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
    const before = this.policies;
    const now = encodePolicies(flatRules(evaluation, policies));
    if (this.isInSync && Bun.deepEquals(before.names, now.names)) return [];
    this.policies = now;
    const added = <Value>(some: ReadonlyMap<string, Value>, others: ReadonlyMap<string, unknown>) =>
      [...some].filter(([name]) => !others.has(name));
    return [
      ...added(now.nets, before.nets).flatMap(([name, nets]) => setUpdates(name, "address", nets.flatMap(memberTexts))),
      ...added(now.policies, before.policies).map(([name, rules]) => policyUpdate(name, rules)),
      endpointUpdate(this.workload, now.names),
      ...added(before.policies, now.policies).map(([name]) => policyRemove(name)),
      ...added(before.nets, now.nets).map(([name]) => setRemove(name)),
    ];
  }
}

function encodePolicies(lists: readonly (readonly FlatRule[])[]): SentPolicies {
  const policies = new Map<string, readonly Uint8Array[]>();
  const nets = new Map<string, readonly string[]>();
  const setOf = (members: readonly string[]) => {
    const name = `n_${digestOf(members)}`;
    nets.set(name, members);
    return name;
  };
  const pieces = lists.flatMap((rules) => piecesOf(rules.map((rule) => encodeRule(rule, setOf))));
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
