import { describe, expect, test } from "bun:test";
import { decodeFromAgent, decodeFromSidecar } from "./decode-message.ts";
import { MalformedMessage } from "./malformed-message.ts";
import { type FromAgent, type FromSidecar, SIDECAR_PROTOCOL } from "./sidecar-state.ts";

const FROM_AGENT: readonly FromAgent[] = [
  { type: "welcome", protocol: SIDECAR_PROTOCOL, version: "1.2.3" },
  { type: "refused", message: "upgrade the node agents first" },
  { type: "update", revision: 2 },
  {
    type: "update",
    revision: 1,
    addresses: ["10.0.0.1", "fd00::1"],
    evaluation: {
      tiers: [{ name: "default", defaultAction: "Deny", policies: ["red/web", "gone"] }],
      profiles: [{ index: 0, action: "Allow", source: {}, destination: {} }],
    },
    policies: {
      "red/web": {
        title: "red/web",
        rules: [
          {
            index: 3,
            action: "Pass",
            family: 4,
            source: { nets: ["10.0.0.0/8"], notNets: [], sets: ["a"], notSets: ["b"], identities: "c" },
            destination: { ports: { ranges: [[80, 90]], set: "d" }, notPorts: { ranges: [] } },
            http: { methods: ["GET"], paths: [{ exact: "/" }, { prefix: "/a" }] },
          },
        ],
      },
      gone: null,
    },
    sets: { a: { members: ["10.0.0.1"] }, b: { add: ["10.0.0.2"], remove: [] }, c: null },
  },
];

const FROM_SIDECAR: readonly FromSidecar[] = [
  { type: "hello", protocol: SIDECAR_PROTOCOL, version: "1.2.3" },
  { type: "applied", revision: 7 },
];

/** The field that the error names. */
function fieldOf(decode: (line: string) => unknown, message: unknown): string {
  try {
    decode(typeof message === "string" ? message : JSON.stringify(message));
  } catch (error) {
    if (error instanceof MalformedMessage) return error.field;
    throw error;
  }
  return "none";
}

describe("decodeFromAgent()", () => {
  test.each(FROM_AGENT)("reads $type", (message) => {
    expect(decodeFromAgent(JSON.stringify(message))).toEqual(message);
  });

  const rule = { index: 0, action: "Allow", source: {}, destination: {} };
  const withRule = (changes: object) => ({
    type: "update",
    revision: 1,
    policies: { web: { title: "web", rules: [rule, { ...rule, ...changes }] } },
  });

  test.each<readonly [string, unknown]>([
    ["", "{"],
    ["type", "[]"],
    ["type", "null"],
    ["type", { type: "hello", protocol: 1, version: "1" }],
    ["type", { type: "toString" }],
    ["protocol", { type: "welcome", version: "1" }],
    ["message", { type: "refused", message: 1 }],
    ["revision", { type: "update" }],
    ["revision", { type: "update", revision: 0 }],
    ["revision", { type: "update", revision: 1.5 }],
    ["addresses[1]", { type: "update", revision: 1, addresses: ["10.0.0.1", 1] }],
    ["more", { type: "update", revision: 1, more: 1 }],
    ["evaluation.tiers[0].defaultAction", { type: "update", revision: 1, evaluation: tierWith("Allow") }],
    ["policies.web.rules[1].action", withRule({ action: "Log" })],
    ["policies.web.rules[1].family", withRule({ family: 5 })],
    ["policies.web.rules[1].source", withRule({ source: null })],
    ["policies.web.rules[1].source.selector", withRule({ source: { selector: "all()" } })],
    ["policies.web.rules[1].source.nets[0]", withRule({ source: { nets: [{}] } })],
    ["policies.web.rules[1].destination.ports.ranges[0][1]", withRule(ports([[1, 65_536]]))],
    ["policies.web.rules[1].destination.ports.ranges[0]", withRule(ports([1]))],
    ["policies.web.rules[1].http.headers", withRule({ http: { headers: [] } })],
    ["policies.web.rules[1].http.paths[0]", withRule({ http: { paths: [{ regex: "/" }] } })],
    ["policies.web.rules[1].http.paths[0]", withRule({ http: { paths: [{ exact: "/", prefix: "/" }] } })],
    ["sets.a", { type: "update", revision: 1, sets: { a: { members: ["10.0.0.1", 5] } } }],
    ["sets.a", { type: "update", revision: 1, sets: { a: { members: [], add: [], remove: [] } } }],
    ["sets.a", { type: "update", revision: 1, sets: { a: { add: [] } } }],
  ])("names the field %p of what it cannot read", (field, message) => {
    expect(fieldOf(decodeFromAgent, message)).toBe(field);
  });

  test("reads a welcome of a later release, which says more", () => {
    const line = JSON.stringify({ type: "welcome", protocol: 1, version: "9", more: [] });
    expect(decodeFromAgent(line)).toEqual({ type: "welcome", protocol: 1, version: "9" });
  });
});

function ports(ranges: unknown): object {
  return { destination: { ports: { ranges } } };
}

function tierWith(defaultAction: string): object {
  return { tiers: [{ name: "default", defaultAction, policies: [] }], profiles: [] };
}

describe("decodeFromSidecar()", () => {
  test.each(FROM_SIDECAR)("reads $type", (message) => {
    expect(decodeFromSidecar(JSON.stringify(message))).toEqual(message);
  });

  test("reads a hello of a later protocol, which says more", () => {
    const line = JSON.stringify({ type: "hello", protocol: 9, version: "9", more: {} });
    expect(decodeFromSidecar(line)).toEqual({ type: "hello", protocol: 9, version: "9" });
  });

  test.each<readonly [string, unknown]>([
    ["", "GET / HTTP/1.1"],
    ["", ""],
    ["type", "{}"],
    ["type", { type: "update", revision: 1 }],
    ["type", { type: "__proto__" }],
    ["protocol", { type: "hello", protocol: "1", version: "1" }],
    ["protocol", { type: "hello", protocol: 0, version: "1" }],
    ["version", { type: "hello", protocol: 1, version: "1".repeat(1_000) }],
    ["revision", { type: "applied", revision: -1 }],
    ["revision", { type: "applied" }],
  ])("names the field %p of what it cannot read", (field, message) => {
    expect(fieldOf(decodeFromSidecar, message)).toBe(field);
  });
});
