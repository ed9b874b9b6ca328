/** What policies with `doNotTrack` decide, as the kernel does not track it: allowed packets are no flows, and denied ones are. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { FlowRecord } from "../../src/flows/flow-record.ts";
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../src/model/profile.ts";
import { HOST_NODE } from "../policy/host-site.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { connectionsIn } from "./captured-connections.ts";
import { askFlows, type FlowSite, flowsConfiguration, openFlowSite, untilCollecting } from "./flow-site.ts";
import { attempt } from "./traffic.ts";

const [UNTRACKED_PORT, DENIED_PORT] = [80, 81];
const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

const untracked = globalNetworkPolicy.make(
  { name: "untracked" },
  {
    ...{ tier: "default", order: 1, selector: "has(host)", types: ["Ingress", "Egress"] },
    ...{ doNotTrack: true, preDNAT: false, applyOnForward: true },
    ingress: [
      { action: "Allow", protocol: "UDP", destination: { ports: [UNTRACKED_PORT] } },
      { action: "Deny", protocol: "UDP", destination: { ports: [DENIED_PORT] } },
    ],
    egress: [{ action: "Allow", protocol: "UDP", source: { ports: [UNTRACKED_PORT] } }],
  },
);

describe("flows and doNotTrack", () => {
  let site: FlowSite;
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openFlowSite({ labels: { "x/a": { app: "a" } } });
    await site.hostSite.apply({
      policies: [untracked],
      hostEndpoints: [
        hostEndpoint.make(
          { name: "out", labels: { host: "out" } },
          { node: HOST_NODE, interfaceName: "out0", profiles: [DEFAULT_ALLOW_PROFILE] },
        ),
      ],
      configurations: [flowsConfiguration({}, `node.${HOST_NODE}`)],
    });
    await untilCollecting(site.host);
  });
  afterAll(async () => {
    await site?.[Symbol.asyncDispose]();
  });

  const fromOutside = (to: string, protocol: "tcp" | "udp", port: number, family: 4 | 6) => {
    const address = site.end(to).addresses[family === 4 ? 0 : 1];
    return attempt(site.host, { from: site.end("outside"), address, protocol, port, up: 2, down: 10 });
  };
  const answeredDatagrams = () =>
    connectionsIn(site.captures.get("outside")?.packets() ?? []).filter(
      ({ protocol, destinationPort, received }) =>
        protocol === 17 && destinationPort === UNTRACKED_PORT && received.packets > 0,
    ).length;
  const text = ({ protocol, source, destination, verdict, decisions }: FlowRecord) => {
    const rules = decisions.map(({ point, rule, unknown }) => `${point}: ${rule ?? unknown}`);
    const ends =
      source.kind === "outside"
        ? `outside -> ${destination.name} ${destination.port}`
        : `${source.kind} ${source.port} -> ${destination.kind}`;
    return `${protocol} ${ends} ${verdict}, ${rules.join(", ")}`;
  };

  test("allowed packets are in no record, denied ones name the rule, and tracked connections are as ever", async () => {
    for (const family of [4, 6] as const) {
      for (const to of ["host", "x/a"]) {
        await fromOutside(to, "udp", UNTRACKED_PORT, family);
        await fromOutside(to, "udp", DENIED_PORT, family);
      }
    }
    for (const family of [4, 6] as const) await fromOutside("x/a", "tcp", UNTRACKED_PORT, family);
    const tracked = async () => (await askFlows(site.host)).flows.filter(({ protocol }) => protocol === 6);
    await pollUntil(async () => (await tracked()).length === 2, "the connections that came last");
    await pollUntil(async () => (await askFlows(site.host)).flows.length >= 8, "all records");

    // Answers of the pod leave with the address of the host: the kernel takes them for connections of their own, and translates them.
    expect(answeredDatagrams()).toBe(2);
    const { flows } = await askFlows(site.host);
    const each = (words: string) => [words, words];
    expect(flows.map(text).toSorted()).toEqual([
      ...each("17 outside -> a 81 denied, host in: untracked ingress 1"),
      ...each("17 outside -> node-1 81 denied, host in: untracked ingress 1"),
      ...each("17 pod 80 -> outside allowed, workload egress: profile egress"),
      ...each("6 outside -> a 80 allowed, workload ingress: profile ingress"),
    ]);
  });
});
