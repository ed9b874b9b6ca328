import { describe, expect, test } from "bun:test";
import { Fields } from "../../grpc/protobuf.ts";
import { SetHistory } from "../../policy/compile/set-history.ts";
import type { SidecarRule } from "../../policy/requests/sidecar-state.ts";
import type { SidecarState } from "../../policy/sidecar-state/sidecar-states.ts";
import { differenceOf, type SentState } from "../../policy/sidecar-state/state-difference.ts";
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
  private readonly state = new SyncState("shop/web");
  private sent: SentState | undefined;

  /** What it is sent: the kind of each message, and the texts of a set or an account. */
  tell(state: SidecarState): readonly (readonly string[])[] {
    const difference = differenceOf(this.sent, state);
    if (difference === undefined) return [];
    this.sent = difference.sent;
    return this.state.messagesFor(difference.update, state).map((bytes) => {
      const message = new Fields(bytes);
      const [field = 0, name = ""] = [...NAMES].find(([number]) => message.one(number) !== undefined) ?? [];
      return [name, ...texts(name, message.one(field))];
    });
  }
}

function texts(name: string, message: Fields | undefined): readonly string[] {
  if (message === undefined || !name.startsWith("set")) return [];
  return message.text(1) === "" ? [] : [message.text(1), String(message.number(3))];
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
      ["set change", "s_a", "0"],
      ["set", "v_a", "1"],
    ]);
  });

  test("a set with a network that those sidecars do not find is sent as its addresses, and always as a whole", () => {
    const set = new TestSet("10.0.0.0/30", "10.0.0.1");
    const conversation = new Conversation();
    const state = stateOf({ s_a: set }, [rule({ sets: ["s_a"] })]);
    conversation.tell(state);
    set.drop("10.0.0.1");

    expect(conversation.tell(state)).toEqual([["set", "s_a", "2"]]);
  });
});
