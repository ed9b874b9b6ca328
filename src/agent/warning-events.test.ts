import { describe, expect, test } from "bun:test";
import type { KubeRequest } from "../kube/api.ts";
import { nodeEvents } from "./warning-events.ts";

type Given = Parameters<typeof nodeEvents>[0];

function given({ status = 201, isOrchestratorApi = true } = {}) {
  const [requests, logged]: [KubeRequest[], string[]] = [[], []];
  const client = {
    request: async (request: KubeRequest) => {
      requests.push(request);
      return { status, text: "{}" };
    },
    close: async () => {},
  };
  const followed = {
    means: { clock: { now: () => new Date(0) }, openKubeClient: async () => client },
    network: { node: "node-1", orchestrator: { agentAccess: { kubeconfigs: ["a"] } } },
    store: { isOrchestratorApi },
    log: (message: string) => void logged.push(message),
  } as unknown as Given;
  return { tell: nodeEvents(followed, new AbortController().signal), requests, logged };
}

describe("nodeEvents()", () => {
  test("says of the Node what was found out", async () => {
    const { tell, requests } = given();
    await tell("Checksum offload of vxlan is off");
    const [{ path, body }] = requests as [KubeRequest];
    expect(path).toBe("/api/v1/namespaces/default/events");
    expect(JSON.parse(String(body))).toMatchObject({
      ...{ kind: "Event", type: "Warning", reason: "TunnelPath", message: "Checksum offload of vxlan is off" },
      involvedObject: { kind: "Node", name: "node-1" },
    });
  });

  test("logs what the API refuses, but not an event that is there already", async () => {
    const [refused, present] = [given({ status: 403 }), given({ status: 409 })];
    await Promise.all([refused.tell("x"), present.tell("x")]);
    expect(refused.logged).toEqual([expect.stringContaining("status 403")]);
    expect(present.logged).toEqual([]);
  });

  test("sends nothing if the orchestrator is not the datastore", async () => {
    const { tell, requests } = given({ isOrchestratorApi: false });
    await tell("x");
    expect(requests).toEqual([]);
  });
});
