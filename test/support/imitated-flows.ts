/** Answers about flows for tests, and a server on the unix socket of a node that gives them. */
import { mkdirSync } from "node:fs";
import { flowSocketPath } from "../../src/config/run-directory.ts";
import type { FlowAnswer, FlowRollup } from "../../src/flows/flow-answer.ts";
import type { FlowLosses, FlowRecord } from "../../src/flows/flow-record.ts";
import { identity } from "../../src/identity.ts";

export const START = Date.parse("2026-01-02T03:04:01.250Z");

const DATABASE = {
  kind: "pod",
  address: "10.0.1.7",
  port: 5432,
  namespace: "shop",
  name: "db-0",
  owner: { kind: "StatefulSet", name: "db" },
  node: "node-2",
} as const;

/** Asks for a Service, and is allowed by the ingress policy of the backend. */
export const ALLOWED: FlowRecord = {
  id: "n1-2",
  node: "node-1",
  family: 4,
  protocol: 6,
  source: {
    kind: "pod",
    address: "10.0.0.5",
    port: 41_234,
    namespace: "shop",
    name: "web-7f5d9c-x2x4z",
    owner: { kind: "Deployment", name: "web" },
    labels: { app: "web" },
    node: "node-1",
  },
  destination: { kind: "service", address: "10.96.0.20", port: 5432, namespace: "shop", name: "db" },
  backend: DATABASE,
  direction: "both",
  verdict: "allowed",
  decisions: [
    { point: "workload egress", verdict: "allow", rule: "profile egress" },
    { point: "workload ingress", verdict: "allow", rule: "shop/db ingress 0" },
  ],
  state: "ended",
  start: START,
  end: START + 12_300,
  sent: { packets: 12, bytes: 1_034 },
  received: { packets: 10, bytes: 45_600 },
};

/** From outside, denied by the second rule of the policy. */
export const DENIED: FlowRecord = {
  id: "n2-9",
  node: "node-2",
  family: 4,
  protocol: 6,
  source: { kind: "outside", address: "203.0.113.77", port: 50_000 },
  destination: DATABASE,
  direction: "ingress",
  verdict: "denied",
  decisions: [{ point: "workload ingress", verdict: "deny", rule: "shop/db ingress 1" }],
  state: "denied",
  start: START + 500,
  end: START + 1_500,
  sent: { packets: 3, bytes: 180 },
  received: { packets: 0, bytes: 0 },
  suppressed: 7,
};

/** Began before flows were switched on; the host itself, IPv6, behind a masquerade. */
export const OLDER: FlowRecord = {
  id: "n1-3",
  node: "node-1",
  family: 6,
  protocol: 17,
  source: { kind: "host", address: "fd00::2", port: 5353, name: "node-1" },
  destination: { kind: "network set", address: "2001:db8::53", port: 53, name: "resolvers" },
  seenAs: { address: "fd00::1", port: 6000 },
  direction: "egress",
  verdict: "allowed",
  decisions: [{ point: "host out", verdict: "unknown", unknown: "older than the switch" }],
  state: "open",
  start: START - 86_400_000,
  end: START,
  sent: { packets: 1, bytes: 70 },
  received: { packets: 1, bytes: 200 },
};

export const NO_LOSSES: FlowLosses = {
  kernelOverruns: 0,
  rulesUnknown: 0,
  overLimit: 0,
  overCapacity: 0,
  deniedSuppressed: 0,
  namesUnknown: 0,
  notStored: 0,
  notLogged: 0,
  withoutCollector: 0,
};

export const WELL: FlowAnswer = { losses: { node: "node-1", ...NO_LOSSES } };

export function rollup(changes: Partial<FlowRollup> = {}): FlowAnswer {
  const minute = Math.floor(START / 60_000) * 60_000;
  return {
    rollup: {
      node: "node-1",
      from: minute,
      until: minute + 60_000,
      source: { kind: "pod", namespace: "shop", name: "web", ownerKind: "Deployment" },
      destination: { kind: "pod", namespace: "shop", name: "db", ownerKind: "StatefulSet" },
      protocol: 6,
      port: 5432,
      verdict: "allowed",
      rules: ["workload egress: profile egress", "workload ingress: shop/db ingress 0"],
      flows: 3,
      packets: 30,
      bytes: 4_500,
      ...changes,
    },
  };
}

export interface ImitatedNode {
  /** What the admin tool needs to find it. */
  readonly env: Readonly<Record<string, string>>;
  /** The paths and parameters that it was asked, one after the other. */
  readonly asked: readonly string[];
  [Symbol.dispose](): void;
}

/** A line for each answer; a `Response` instead is given as it is. */
export type Answering = (request: Request) => readonly FlowAnswer[] | Response;

/** `directory`: the run directory of its host. */
export function imitateNode(directory: string, answer: Answering): ImitatedNode {
  const env = { [`${identity.environmentPrefix}RUN_DIRECTORY`]: directory };
  const asked: string[] = [];
  mkdirSync(directory, { recursive: true });
  const server = Bun.serve({
    unix: flowSocketPath(env),
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      asked.push(decodeURIComponent(`${pathname}${search}`));
      const answers = answer(request);
      return answers instanceof Response ? answers : new Response(linesOf(answers));
    },
  });
  return { env, asked, [Symbol.dispose]: () => void server.stop(true) };
}

export function linesOf(answers: readonly FlowAnswer[]): string {
  return answers.map((answer) => `${JSON.stringify(answer)}\n`).join("");
}
