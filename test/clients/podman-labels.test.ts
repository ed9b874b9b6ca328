/** Labels of podman's containers that last: what `label container` says is enforced, whatever becomes of the container. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { join } from "node:path";
import { API_VERSION, identity } from "../../src/identity.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { type Host, openHost } from "../support/host.ts";
import { testNeeding } from "../support/needs.ts";
import { BIN_DIRECTORY, installNetwork } from "../support/network-under-test.ts";
import { type Podman, podmanProblem, usePodman } from "../support/podman.ts";
import { pollUntil } from "../support/poll.ts";
import { productNetwork } from "../support/product-network.ts";

const SERVE = ["/bin/httpd", "-f", "-p", "80", "-h", "/www"];
const network = await productNetwork("embedded");
const testPodman = testNeeding(podmanProblem());

/** Databases are reached by what has role=web, and by nothing else. */
const POLICY = {
  apiVersion: API_VERSION,
  kind: "NetworkPolicy",
  metadata: { name: "databases", namespace: "default" },
  spec: {
    selector: "role == 'database'",
    ingress: [{ action: "Allow", source: { selector: "role == 'web'" } }],
  },
};

interface Endpoint {
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly workload: string; readonly containerID: string };
}

describe("labels of podman's containers", () => {
  let host: Host;
  let agent: Agent;
  let podman: Podman;
  let database = "";

  beforeAll(async () => {
    if (podmanProblem() !== undefined) return;
    host = await openHost();
    await installNetwork(host, network);
    agent = await startAgent(host);
    podman = usePodman(host);
    await podman.run("database", network.name, SERVE);
    await podman.run("web", network.name, SERVE);
    [database = ""] = await podman.addressesOf("database", network.name);
  });
  afterAll(async () => {
    await agent?.signal("TERM");
    await host?.[Symbol.asyncDispose]();
  });

  const admin = (words: string, stdin?: string) =>
    host.must([join(BIN_DIRECTORY, identity.adminTool), ...words.split(" ")], {
      ...(stdin === undefined ? {} : { stdin }),
    });
  const endpointOf = async (container: string) =>
    (JSON.parse(await admin("get workloadendpoints -A -o json")) as { items: readonly Endpoint[] }).items.find(
      ({ spec }) => spec.workload === container,
    );
  const reaches = () =>
    podman.exec("web", ["/bin/ping", "-c", "1", "-W", "1", database]).then(
      () => true,
      () => false,
    );
  const until = (expected: "reached" | "closed") =>
    pollUntil(async () => (await reaches()) === (expected === "reached"), `the database to be ${expected}`);

  testPodman("take effect on running containers, and again when they are removed", async () => {
    expect(await reaches()).toBe(true);
    await admin("apply -f -", JSON.stringify(POLICY));
    expect(await admin("label container database role=database")).toMatch(
      /^containerlabels\/\S+\.database labelled\n$/,
    );
    await until("closed");
    await admin("label container web role=web");
    await until("reached");
    // Nobody has written them into the endpoint.
    expect((await endpointOf("web"))?.metadata.labels["role"]).toBeUndefined();
    expect(await admin("get wep -A -l role=web -o name")).toContain(`${(await endpointOf("web"))?.metadata.name}\n`);
    expect(await admin(`policy explain --from web --to database --port 80`)).toMatch(/^Verdict: +allowed$/m);
  });

  testPodman("stay when the container is reloaded, restarted, and replaced by another one of its name", async () => {
    const before = await endpointOf("web");
    const [first] = await podman.addressesOf("web", network.name);
    const expectLabelled = async () => {
      const { metadata } = (await endpointOf("web")) ?? {};
      expect(await admin("get wep -A -l role=web -o name")).toContain(`/${metadata?.name}\n`);
      await until("reached");
    };
    await podman.reload("web");
    await expectLabelled();
    await podman.stop("web");
    await podman.start("web");
    const [second] = await podman.addressesOf("web", network.name);
    await expectLabelled();
    await podman.remove("web");
    await podman.run("web", network.name, SERVE);
    await expectLabelled();

    expect(second).not.toBe(first);
    expect((await endpointOf("web"))?.spec.containerID).not.toBe(before?.spec.containerID);
    await admin("label container web role-");
    await until("closed");
  });

  testPodman("of a network are those of all its containers, and those of the container win", async () => {
    await admin(`label network ${network.name} role=web`);
    await until("reached");
    await admin("label container web role=other --overwrite");
    await until("closed");
    await admin("label container web role-");
    await until("reached");
    await admin(`delete containerlabels network.${network.name}`);
    await until("closed");
  });
});
