/**
 * With Debian's kernels, which tell the connection of a denied packet: the flow names the Service and the published port that were
 * asked for, the backend, and the rules that accepted it before one denied it.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import type { FlowRecord } from "../../src/flows/flow-record.ts";
import { resource } from "../routing/resource.ts";
import { hasEtcd } from "../support/etcd.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { proofSize } from "../support/proof-size.ts";
import { type Guest, guestProblem, KERNELS, type Kernel, startGuest } from "./guest.ts";
import { type GuestNode, NODE_ADDRESS, startGuestNode } from "./guest-node.ts";
import { ask, serve } from "./talk.ts";

const SERVICE = "10.96.0.10";
const [SERVICE_PORT, HOST_PORT, SERVER_PORT] = [80, 8081, 8080];
const PATIENCE_MILLISECONDS = 240_000;
const TEST_MILLISECONDS = 900_000;

/** Nothing of it is in `make test`: one guest there is enough. */
for (const kernel of proofSize<readonly Kernel[]>({ everyDay: [], soak: KERNELS })) {
  const needs = [await guestProblem(kernel), hasEtcd ? undefined : "needs etcd", program("nft"), program("python3")];
  const test = testNeeding(...needs);

  describe(`denied flows with ${kernel}`, () => {
    const undo = new AsyncDisposableStack();
    let guest: Guest;
    let node: GuestNode;
    let server = "";
    beforeAll(async () => {
      if (needs.some((need) => need !== undefined)) return;
      guest = undo.use(await startGuest({ kernel }));
      node = await startGuestNode(guest);
      await node.apply(resource("NodeAgentConfiguration", "default", { flows: "Enabled" }));
      await node.addPod("client");
      const portMappings = [{ hostPort: HOST_PORT, containerPort: SERVER_PORT, protocol: "tcp" }];
      server = (await node.addPod("server", { portMappings })).address;
      for (const name of ["client", "server"]) await node.label(name, `role=${name}`);
      await serve(guest, { netns: "server", name: "server", port: SERVER_PORT });
      await guest.must(["nft", "-f", "-"], { stdin: serviceRules(server) });
    }, TEST_MILLISECONDS);
    afterAll(() => undo.disposeAsync());

    const isReached = async (address: string, port: number) =>
      !(await ask(guest, { netns: "client", address, port })).startsWith("nothing");
    const denied = async (): Promise<readonly FlowRecord[]> => {
      const printed = await node.admin("flows --local --verdict denied --last 50 -o json");
      return printed
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as FlowRecord);
    };

    test(
      "name whom was asked, the backend, and the rules that accepted it before",
      async () => {
        expect([await isReached(SERVICE, SERVICE_PORT), await isReached(NODE_ADDRESS, HOST_PORT)]).toEqual([
          true,
          true,
        ]);
        await node.apply(
          resource("GlobalNetworkPolicy", "out", {
            ...{ selector: "role == 'client'", types: ["Egress"], egress: [{ action: "Allow" }] },
          }),
          resource("GlobalNetworkPolicy", "in", {
            ...{ selector: "role == 'server'", types: ["Ingress"] },
            ingress: [{ action: "Deny", source: { selector: "role == 'client'" } }, { action: "Allow" }],
          }),
        );
        await pollUntil(
          async () => !(await isReached(SERVICE, SERVICE_PORT)),
          "the policy to deny it",
          PATIENCE_MILLISECONDS,
        );
        expect(await isReached(NODE_ADDRESS, HOST_PORT)).toBe(false);
        const flowTo = async (port: number) => (await denied()).find(({ destination }) => destination.port === port);
        const hasBoth = async () =>
          (await flowTo(SERVICE_PORT)) !== undefined && (await flowTo(HOST_PORT)) !== undefined;
        await pollUntil(hasBoth, "both flows", PATIENCE_MILLISECONDS);

        const same = {
          backend: { kind: "pod", name: "server", address: server, port: SERVER_PORT },
          decisions: [
            { point: "workload egress", verdict: "allow", rule: "out egress 0" },
            { point: "workload ingress", verdict: "deny", rule: "in ingress 0" },
          ],
        };
        expect(await flowTo(SERVICE_PORT)).toMatchObject({ destination: { address: SERVICE }, ...same });
        expect(await flowTo(HOST_PORT)).toMatchObject({
          destination: { kind: "host", name: "node", address: NODE_ADDRESS },
          ...same,
        });
        expect(await guest.must(["cat", "/run/guest/agent.log"])).not.toContain("NETLINK_GLUE_CT");
      },
      TEST_MILLISECONDS,
    );
  });
}

function serviceRules(server: string): string {
  return `table ip services {
  chain prerouting {
    type nat hook prerouting priority dstnat
    ip daddr ${SERVICE} tcp dport ${SERVICE_PORT} dnat to ${server}:${SERVER_PORT}
  }
}`;
}
