/** The real node agent with a program in the place of a sidecar: HTTP rules open for it, and policy edits reach it at once. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { mkdirSync } from "node:fs";
import { identity } from "../../src/identity.ts";
import { ENDPOINT } from "../../src/model/kinds.ts";
import type { PolicyRule } from "../../src/model/policy-rule.ts";
import { SIDECAR_ANNOTATION } from "../../src/model/sidecar-annotation.ts";
import { launchAgent } from "../agent/agent.ts";
import { callGrpc, publishRequest, unpublishRequest } from "../support/csi.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { TestSidecar } from "../support/test-sidecar.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";

const PORT = 8080;
const KUBELET = "/var/lib/kubelet";
const UID = "11111111-2222-3333-4444-555555555555";
const TARGET = `${KUBELET}/pods/${UID}/mount`;
const needs = [hostProblem(), program("nft")];
const test = testNeeding(...needs);

describe("the sidecar of a pod", () => {
  let site: PolicySite;
  let server: PodEnd;
  let client: PodEnd;
  let listener: Disposable;
  let sidecar: TestSidecar;

  const view = (path: string) => site.site.host.view(path);
  const csi = (method: string, request: ReturnType<typeof publishRequest>) =>
    callGrpc(view(`${KUBELET}/plugins/${identity.csiDriver}/csi.sock`), `/csi.v1.Node/${method}`, request);
  const socket = () => view(`${identity.runDirectory.replace(/^\/var\/run\//, "/run/")}/sidecars/${UID}/agent.sock`);
  const allow = (rule: Partial<PolicyRule>) =>
    site.setPolicies([
      { namespace: "x", name: "web", spec: { selector: "app == 'server'", ingress: [{ action: "Allow", ...rule }] } },
    ]);
  const connects = async () => (await askTcp(client.netns, server.addresses[0], PORT)).split(" ")[0];
  const untilConnects = (wanted: string) => pollUntil(async () => (await connects()) === wanted, wanted);
  const isInKernel = async () => {
    const command = ["nft", "list", "set", "inet", identity.policyTable, "sidecars"];
    return (await site.site.host.run(command)).stdout.includes("elements");
  };
  const connectSidecar = async () => {
    const connected = await TestSidecar.connect(socket());
    connected.hello("1.2.3");
    await connected.hears(2);
    connected.apply();
    return connected;
  };

  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    site = await openPolicySite();
    for (const name of [`pods/${UID}`, "plugins_registry"]) mkdirSync(view(`${KUBELET}/${name}`), { recursive: true });
    await site.labelNamespace("x", {});
    [server, client] = [
      await site.addPod("x/server", { app: "server" }),
      await site.addPod("x/client", { app: "client" }),
    ];
    listener = serveTcp(server.netns, "server", PORT);
    await allow({ protocol: "TCP", http: { methods: ["GET"] }, source: { selector: "app == 'client'" } });
    await site.untilApplied();
  });
  afterAll(async () => {
    listener?.[Symbol.dispose]();
    sidecar?.close();
    await site?.[Symbol.asyncDispose]();
  });

  test("an HTTP rule lets nothing through until the sidecar has applied the policies of its pod", async () => {
    expect(await connects()).toBe("silence");
    const attributes = {
      "csi.storage.k8s.io/pod.name": "server",
      "csi.storage.k8s.io/pod.namespace": "x",
      user: String(process.getuid?.()),
    };
    await pollUntil(
      async () =>
        (await csi("NodePublishVolume", publishRequest({ target: TARGET, uid: UID, attributes }))).status === 0,
      "the volume",
    );
    sidecar = await TestSidecar.connect(socket());
    sidecar.hello("1.2.3");
    const [, update] = await sidecar.hears(2);
    expect(update).toMatchObject({ type: "update", revision: 1, addresses: server.addresses });
    expect(JSON.stringify(update)).toContain(`"http":{"methods":["GET"]}`);
    expect(await connects()).toBe("silence");
    sidecar.apply();
    await untilConnects("server");
  });

  test("an edit of the policy reaches the sidecar within a second", async () => {
    const since = performance.now();
    await allow({ protocol: "TCP", http: { methods: ["PUT"] }, source: { selector: "app == 'client'" } });
    await pollUntil(() => JSON.stringify(sidecar.updates.at(-1)).includes(`"PUT"`), "the edit");
    expect(performance.now() - since).toBeLessThan(1_000);
    sidecar.apply();
  });

  test("its release is written on the endpoint of the pod", async () => {
    const { store } = site;
    const key = ENDPOINT.key({ namespace: "x", name: "node--1-k8s-server-eth0" });
    await pollUntil(async () => {
      const { answers } = await store.read([{ kind: "key", key }]);
      return (answers[0]?.[0]?.value ?? "").includes(`"${SIDECAR_ANNOTATION}":"1.2.3"`);
    }, "the annotation");
  });

  test("a killed agent interrupts nothing; with the next one connections pass as soon as the sidecar has connected again", async () => {
    await site.agent.signal("KILL");
    await site.agent.ended;
    await sidecar.closed();
    expect(await connects()).toBe("server");
    const agent = launchAgent(site.site.host);
    await pollUntil(() => agent.log().includes("Network policy: enforced"), "the agent to enforce policy");
    // This datastore does not tell the UID of a pod: whether it is still the same is known only from its sidecar.
    expect(await isInKernel()).toBe(false);
    sidecar = await connectSidecar();
    await untilConnects("server");
    // Longer than an agent keeps what the former one knew.
    await Bun.sleep(2_500);
    expect([await isInKernel(), await connects()]).toEqual([true, "server"]);
  });

  test("without the sidecar nothing passes, at once; and the socket goes with the volume", async () => {
    sidecar.close();
    await pollUntil(async () => !(await isInKernel()), "the interface to go", 1_000);
    expect(await connects()).toBe("silence");
    sidecar = await connectSidecar();
    await untilConnects("server");
    expect((await csi("NodeUnpublishVolume", unpublishRequest("csi-1", TARGET))).status).toBe(0);
    await sidecar.closed();
    await pollUntil(async () => !(await isInKernel()), "the interface to go", 1_000);
  });
});
