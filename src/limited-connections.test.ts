import { beforeEach, describe, expect, test } from "bun:test";
import { type ConnectionLimits, LimitedConnections } from "./limited-connections.ts";

interface Timer {
  readonly at: number;
  readonly action: () => void;
}

let now: number;
let timers: Set<Timer>;
let ended: string[];
beforeEach(() => {
  now = 0;
  timers = new Set();
  ended = [];
});

function open(limits: ConnectionLimits): LimitedConnections<string> {
  const end = (connection: string) => void ended.push(connection);
  return new LimitedConnections<string>(limits, end, {
    after: (milliseconds, action) => {
      const timer = { at: now + milliseconds, action };
      timers.add(timer);
      return () => timers.delete(timer);
    },
  });
}

function pass(milliseconds: number): void {
  now += milliseconds;
  for (const timer of [...timers].filter(({ at }) => at <= now)) {
    timers.delete(timer);
    timer.action();
  }
}

describe("LimitedConnections", () => {
  test("closes the oldest that waits for its request, for a new one", () => {
    const connections = open({ most: 3 });
    const admitted = ["a", "b", "c", "d", "e"].map((each) => connections.admit(each));

    expect([admitted, ended, connections.size]).toEqual([[true, true, true, true, true], ["a", "b"], 3]);
  });

  test("refuses a new one only if all are in work", () => {
    const connections = open({ most: 2 });
    for (const each of ["a", "b"]) connections.admit(each);
    connections.begin("a");
    expect([connections.admit("c"), ended]).toEqual([true, ["b"]]);
    connections.begin("c");
    expect([connections.admit("d"), connections.size]).toEqual([false, 2]);
    connections.reply("a");
    expect([connections.admit("e"), ended]).toEqual([true, ["b", "a"]]);
  });

  test("limits those of one peer, which takes no place of others", () => {
    const connections = open({ most: 4, mostOfPeer: 2 });
    connections.admit("a", "10.0.0.1");
    for (const each of ["b", "c", "d"]) connections.admit(each, "10.0.0.2");
    expect(ended).toEqual(["b"]);
    for (const each of ["c", "d"]) connections.begin(each);
    expect(connections.admit("e", "10.0.0.2")).toBe(false);
    expect(connections.admit("f", "10.0.0.3")).toBe(true);
    expect(ended).toEqual(["b"]);
  });

  test("closes one whose request takes too long, however it arrives, or whose client does not leave", () => {
    const connections = open({ most: 4, requestMilliseconds: 5, replyMilliseconds: 7 });
    for (const each of ["slow", "worked", "gone"]) connections.admit(each);
    connections.begin("worked");
    connections.left("gone");
    pass(5);
    expect(ended).toEqual(["slow"]);
    pass(100);
    connections.reply("worked");
    pass(6);
    expect(ended).toEqual(["slow"]);
    pass(1);
    expect([ended, connections.size, timers.size]).toEqual([["slow", "worked"], 0, 0]);
  });

  test("limits those whose clients do not take their replies", () => {
    const connections = open({ most: 4, mostReplied: 1 });
    for (const each of ["a", "b", "c"]) connections.admit(each);
    for (const each of ["b", "c"]) {
      connections.begin(each);
      connections.reply(each);
      connections.reply(each);
    }

    expect([ended, connections.size]).toEqual([["b"], 2]);
  });

  test("keeps no timer of a connection that was closed for another", () => {
    const connections = open({ most: 1, requestMilliseconds: 5 });
    for (const each of ["a", "b"]) connections.admit(each);
    expect(timers.size).toBe(1);
    connections.endAll();
    expect([timers.size, ended]).toEqual([0, ["a", "b"]]);
  });
});
