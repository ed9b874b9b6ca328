import { describe, expect, test } from "bun:test";
import { decodeMessage } from "../../../test/support/protobuf.ts";
import { Fields } from "../../grpc/protobuf.ts";
import { SetHistory } from "../../policy/compile/set-history.ts";
import type { SidecarRule } from "../protocol/sidecar-state.ts";
import type { SidecarState } from "../state/sidecar-states.ts";
import { differenceOf, type SentState } from "../state/state-difference.ts";
import { SyncState } from "./sync-state.ts";

const NAMES = new Map([
  [1, "in sync"],
  [2, "set"],
  [3, "set change"],
  [4, "set gone"],
  [7, "policy"],
  [8, "policy gone"],
  [11, "endpoint"],
  [19, "account"],
  [20, "account gone"],
]);

/** A set whose members a test changes. */
class TestSet extends SetHistory {
  private readonly now: Set<string>;

  constructor(...members: readonly string[]) {
    const now = new Set(members);
    super(() => now);
    this.now = now;
  }

  add(member: string): void {
    this.now.add(member);
    this.added(member);
  }

  drop(member: string): void {
    this.now.delete(member);
    this.removed(member);
  }
}

const rule = (source: SidecarRule["source"]): SidecarRule => ({ index: 0, action: "Allow", source, destination: {} });

function stateOf(
  sets: Readonly<Record<string, TestSet>>,
  ...policies: readonly (readonly SidecarRule[])[]
): SidecarState {
  const keys = policies.map((_, index) => `p${index}`);
  return {
    addresses: ["10.0.0.1"],
    evaluation: { tiers: [{ name: "default", defaultAction: "Deny", policies: keys }], profiles: [] },
    policies: new Map(policies.map((rules, index) => [`p${index}`, { title: "", rules }])),
    sets: new Map(Object.entries(sets)),
  };
}

class Conversation {
  /** The name, what was added and what was removed. */
  changes: readonly (readonly [string, readonly string[], readonly string[]])[] = [];
  private readonly state = new SyncState("shop/web");
  private sent: SentState | undefined;

  /** What it is sent: the kind of each message, and the texts of a set or an account. */
  tell(state: SidecarState): readonly (readonly string[])[] {
    const difference = differenceOf(this.sent, state);
    if (difference === undefined) return [];
    this.sent = difference.sent;
    const messages = this.state.messagesFor(difference.update, state);
    this.changes = messages.flatMap((bytes) =>
      decodeMessage(bytes)
        .messages(3)
        .map((change) => [change.text(1), change.texts(2), change.texts(3)] as const),
    );
    return messages.map((bytes) => {
      const message = new Fields(bytes);
      const [field = 0, name = ""] = [...NAMES].find(([number]) => message.one(number) !== undefined) ?? [];
      return [name, ...texts(name, message.one(field))];
    });
  }
}

function texts(name: string, message: Fields | undefined): readonly string[] {
  if (message === undefined || !name.startsWith("set")) return [];
  if (message.text(1) === "") return [];
  return [message.text(1), ...(name === "set" ? [String(message.number(3))] : [])];
}

const kinds = (messages: readonly (readonly string[])[]) => messages.map(([name]) => name);

describe("SyncState", () => {
  test("everything that the rules need comes before them, and what is gone goes after them", () => {
    const [a, accounts] = [new TestSet("10.0.0.2"), new TestSet("shop/web")];
    const conversation = new Conversation();
    const before = stateOf({ s_a: a, i_a: accounts }, [
      rule({ sets: ["s_a"], identities: "i_a", notNets: ["10.0.0.9/32"] }),
    ]);

    expect(kinds(conversation.tell(before))).toEqual(["set", "account", "set", "policy", "endpoint", "in sync"]);
    expect(kinds(conversation.tell(stateOf({ s_b: a }, [rule({ sets: ["s_b"] })])))).toEqual([
      ...["set", "policy", "endpoint"],
      ...["policy gone", "set gone", "set gone", "account gone"],
    ]);
  });

  test("a policy that is the same as before is not sent again", () => {
    const [one, other] = [rule({ nets: ["10.0.0.0/8"] }), rule({ nets: ["10.1.0.0/16"] })];
    const conversation = new Conversation();
    conversation.tell(stateOf({}, [one], [other]));

    expect(kinds(conversation.tell(stateOf({}, [other], [one])))).toEqual(["endpoint"]);
    expect(conversation.tell(stateOf({}, [other], [one]))).toEqual([]);
  });

  test("a change of members is one message, and a set that was empty gets the kind of its members", () => {
    const [addresses, ports] = [new TestSet("10.0.0.2"), new TestSet()];
    const conversation = new Conversation();
    const state = stateOf({ s_a: addresses, v_a: ports }, [rule({ sets: ["s_a", "v_a"] })]);

    expect(conversation.tell(state).slice(0, 2)).toEqual([
      ["set", "s_a", "2"],
      ["set", "v_a", "2"],
    ]);
    addresses.add("10.0.0.3");
    ports.add("10.0.0.3 6 80");
    expect(conversation.tell(state)).toEqual([
      ["set change", "s_a"],
      ["set", "v_a", "1"],
    ]);
  });

  test("an address that is a member for two reasons goes with the last of them", () => {
    const set = new TestSet("10.0.0.0/30", "10.0.0.1", "10.0.0.2/32");
    const conversation = new Conversation();
    const state = stateOf({ s_a: set }, [rule({ sets: ["s_a"] })]);
    conversation.tell(state);
    set.drop("10.0.0.1");
    expect(conversation.tell(state)).toEqual([]);
    set.drop("10.0.0.0/30");
    set.add("10.0.0.3");
    conversation.tell(state);

    expect(conversation.changes).toEqual([
      ["s_a", ["10.0.0.3/32"], []],
      ["s_a", [], ["10.0.0.0/32", "10.0.0.1/32"]],
    ]);
  });

  test("members come before new policies, and go after them", () => {
    const set = new TestSet("10.0.0.2");
    const conversation = new Conversation();
    conversation.tell(stateOf({ s_a: set }, [rule({ sets: ["s_a"] })]));
    set.add("10.0.0.3");
    set.drop("10.0.0.2");

    expect(kinds(conversation.tell(stateOf({ s_a: set }, [rule({ sets: ["s_a"] }), rule({})])))).toEqual([
      ...["set change", "policy", "endpoint", "policy gone", "set change"],
    ]);
  });

  test("a set that is in use is never replaced: as a whole it gets another name, in the rules, too", () => {
    const addresses = (first: number) =>
      Array.from({ length: 60_000 }, (_, index) => `10.${first + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`);
    const conversation = new Conversation();
    const rules: readonly SidecarRule[] = [{ ...rule({ sets: ["s_a"] }), action: "Deny" }];
    conversation.tell(stateOf({ s_a: new TestSet(...addresses(0)) }, rules));
    const next = new TestSet(...addresses(1));

    expect(conversation.tell(stateOf({ s_a: next }, rules))).toEqual([
      ...[["set", "s_a_1", "2"], ["set change", "s_a_1"], ["policy"], ["endpoint"]],
      ...[["policy gone"], ["set gone", "s_a"]],
    ]);
    next.drop("10.1.0.0");
    expect(conversation.tell(stateOf({ s_a: next }, rules))).toEqual([["set change", "s_a_1"]]);
    expect(conversation.tell(stateOf({}, []))).toContainEqual(["set gone", "s_a_1"]);
  });

  test("an account that leaves one set of identities and joins another keeps the other", () => {
    const conversation = new Conversation();
    conversation.tell(stateOf({ i_a: new TestSet("shop/web") }, [rule({ identities: "i_a" })]));
    const told = conversation.tell(stateOf({ i_b: new TestSet("shop/web") }, [rule({ identities: "i_b" })]));

    expect(kinds(told)).toEqual(["account", "policy", "endpoint", "policy gone", "account"]);
  });

  test("a set of ports that is sent as a whole while it is empty stays one", () => {
    const conversation = new Conversation();
    const rules = [rule({ sets: ["v_a"] })];
    conversation.tell(stateOf({ v_a: new TestSet("10.0.0.3 6 80") }, rules));
    const next = new TestSet();

    expect(conversation.tell(stateOf({ v_a: next }, rules))).toContainEqual(["set", "v_a_1", "1"]);
    next.add("10.0.0.3 6 81");
    expect(conversation.tell(stateOf({ v_a: next }, rules))).toEqual([["set change", "v_a_1"]]);
  });
});
