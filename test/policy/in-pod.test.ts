/** A node agent that runs in a pod enforces policy on its host. */
import { describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { podOptions } from "../agent/pod.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { failureOf } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { openEnforcedSite } from "./enforced-site.ts";

const PORT = 8080;
const STATUS_DIRECTORY = "/run/vt/endpoint-status";
const test = testNeeding(hostProblem(), program("nft"));

describe("policy with the agent in a pod", () => {
  for (const processes of ["host's processes", "own processes"] as const) {
    test(`rules, endpoint status and changes are the host's, with ${processes}`, async () => {
      const wait = { endpoint_status_dir: STATUS_DIRECTORY, policy_setup_timeout_seconds: 20 };
      await using policies = await openEnforcedSite("embedded", wait);
      const { site } = policies;
      const first = await policies.makePod("shop", "server");
      const config = site.config({ policy: { type: "k8s" } });
      expect(failureOf(await site.call("ADD", await site.makePod(), { config }))).toMatchObject({ code: 11 });

      const agent = await policies.startAgent(podOptions(processes));
      const server = await policies.attach(first);
      const client = await policies.attach(await policies.makePod("shop", "client"));
      const status = readFileSync(site.host.view(`${STATUS_DIRECTORY}/k8s shop%2Fserver eth0`), "utf8");
      expect(JSON.parse(status)).toMatchObject({ containerID: first.containerId });

      using _listener = serveTcp(server.path, "server", PORT);
      const connections = () =>
        Promise.all(
          server.addresses.map(async (address) => (await askTcp(client.path, address, PORT)).split(" ")[0] ?? ""),
        );
      expect(await connections()).toEqual(["server", "server"]);
      await policies.put("shop", "closed", { types: ["Ingress"], ingress: [] });
      await pollUntil(async () => (await connections()).every((reply) => reply === "silence"), "the policy to close");
      await agent.signal("KILL");
      await agent.ended;
      expect(await connections()).toEqual(["silence", "silence"]);
    });
  }
});
