/**
 * Application layer policy in a real pod on a real kubelet: an application with Envoy and the sidecar beside it, on a node
 * on which the product is installed by its manifest. Counts are exact.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout } from "bun:test";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { alpProblem, SHOP } from "./alp-cluster.ts";
import { type AlpSite, openAlpSite, PUBLIC } from "./alp-site.ts";
import { disturbedTests } from "./disturbed-tests.ts";
import { QUICK_START } from "./quick-start.ts";
import { randomTests } from "./random-tests.ts";
import { ROWS, type Row, seenOutcome, titleOf } from "./request-rows.ts";
import { PORTS } from "./served-pod.ts";

const problem = alpProblem();
const testAlp = testNeeding(problem);
setDefaultTimeout(600_000);

describe("application layer policy", () => {
  let site: AlpSite;
  beforeAll(async () => {
    if (problem === undefined) site = await openAlpSite();
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  /** On an overloaded machine Envoy does not wait for the sidecar: only what must be denied is asked once. */
  const outcomeOf = async (row: Row) => {
    const first = seenOutcome(await site.ask(row));
    return row.outcome === "through" && first === "denied" ? seenOutcome(await site.ask(row)) : first;
  };

  testAlp("decides by method, path, service account, label and address, in plain and with mutual TLS", async () => {
    const seen: string[] = [];
    for (const row of ROWS) seen.push(`${titleOf(row)}: ${await outcomeOf(row)}`);

    expect(seen).toEqual(ROWS.map((row) => `${titleOf(row)}: ${row.outcome}`));
  });

  testAlp("does not believe what a client writes about itself", async () => {
    const headers = {
      "x-forwarded-for": site.cluster.clients.frontend.address,
      "x-forwarded-client-cert": "URI=spiffe://cluster.local/ns/shop/sa/frontend",
      "x-envoy-original-path": "/public",
      "x-http-method-override": "GET",
    };
    const question = { client: "batch", method: "POST", path: "/orders", headers } as const;

    expect(await site.ask(question)).toBe(403);
    expect(await site.ask({ ...question, identity: "shop/batch" })).toBe(403);
  });

  testAlp("decides about requests of the node itself, although its packets pass", async () => {
    const { address } = site.targetOf("frontend");
    const curl = ["curl", "-s", "-m", "5", "-o", "/dev/null", "-w", "%{http_code}"];
    const ask = (path: string) => site.cluster.node.host.must([...curl, `http://${address}:${PORTS.plain}${path}`]);

    expect(await ask("/public")).toBe("200");
    expect(await ask("/private")).toBe("403");
  });

  testAlp("lets nothing through that is not HTTP, or that does not pass Envoy", async () => {
    expect(await site.ask(PUBLIC, { port: PORTS.tcp })).toBe("closed");
    expect(await site.ask(PUBLIC, { port: PORTS.application })).toBe("silence");
  });

  testAlp("lets nothing through to a pod without a sidecar, and says why", async () => {
    expect(await site.ask(PUBLIC, { address: site.alone })).toBe("silence");

    const [from, to] = [`${SHOP}/frontend`, `${SHOP}/alone`];
    const asked = ["policy", "explain", "--from", from, "--to", to, "--port", String(PORTS.plain)];
    expect(await site.cluster.admin(...asked)).toMatch(/no sidecar/);
  });

  testAlp("works in the pod of the quick start", async () => {
    const address = await site.cluster.ready(QUICK_START.namespace, QUICK_START.pod);
    const ask = (method: string, path: string, port: number = PORTS.plain) =>
      site.ask({ client: "frontend", method, path }, { address, port });

    await pollUntil(async () => (await ask("GET", "/index.html")) === 200, "the quick start");
    expect(await ask("POST", "/index.html")).toBe(403);
    expect(await ask("GET", "/private")).toBe(403);
    expect(await ask("GET", "/index.html", PORTS.application)).toBe("silence");
    // The sidecar that is killed below is the one of "web".
    const { namespace, pod } = QUICK_START;
    await site.cluster.controlPlane.server.kubectl(["delete", "pod", pod, `--namespace=${namespace}`, "--now"]);
  });

  disturbedTests(testAlp, () => site);

  randomTests(testAlp, () => site);
});
