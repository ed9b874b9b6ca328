/** `policy explain` for rules with http, and for requests. */
import { beforeEach, describe, expect, test } from "bun:test";
import { type AdminRun, runInside } from "../../../../test/support/admin-context.ts";
import { seed } from "../../../../test/support/ipam.ts";
import { openMemory } from "../../../datastore/memory/memory.ts";
import { API_VERSION, identity } from "../../../identity.ts";
import { resourceKey } from "../../../model/keys.ts";
import { SIDECAR_ANNOTATION } from "../../../model/sidecar-annotation.ts";
import { EXIT_USAGE } from "../../main/command.ts";

const EMBEDDED = { DATASTORE_TYPE: "embedded", DATASTORE_PATH: import.meta.path };
const LABEL = identity.labelPrefix;

let store = openMemory();
beforeEach(async () => {
  store = openMemory();
  await put("profiles", "Profile", "kns.shop", { egress: [{ action: "Allow" }] });
  await put("profiles", "Profile", "ksa.shop.web", {});
  await put("nodes", "Node", "node-1", { bgp: { ipv4Address: "192.0.2.1/24" } });
  await pod("web", "10.0.0.1");
  await pod("catalog", "10.0.0.2");
  await put(
    "networkpolicies",
    "NetworkPolicy",
    "catalog",
    {
      ingress: [
        {
          action: "Allow",
          source: { serviceAccounts: { names: ["web"] } },
          http: { methods: ["GET"], paths: [{ prefix: "/products/" }] },
        },
      ],
    },
    { namespace: "shop" },
  );
});

function put(plural: string, kind: string, name: string, spec: object, more: object = {}): Promise<void> {
  const metadata = { name, ...more };
  const value = JSON.stringify({ apiVersion: API_VERSION, kind, metadata, spec });
  return seed(store, { kind: "put", key: resourceKey(plural, { name, ...more }), value });
}

function pod(name: string, address: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
  return put(
    "workloadendpoints",
    "WorkloadEndpoint",
    `node--1-k8s-${name}-eth0`,
    {
      ...{ orchestrator: "k8s", node: "node-1", pod: name, endpoint: "eth0", profiles: ["kns.shop"] },
      ...{ interfaceName: `x${name}`, ipNetworks: [`${address}/32`] },
    },
    { namespace: "shop", annotations, labels: { [`${LABEL}namespace`]: "shop", [`${LABEL}serviceaccount`]: name } },
  );
}

const withSidecar = () => pod("catalog", "10.0.0.2", { [SIDECAR_ANNOTATION]: "1.2.3" });
const TO_CATALOG = "--from shop/web --to shop/catalog --port 80";

function explain(words: string): Promise<AdminRun> {
  return runInside(["policy", "explain", ...words.split(" ")], { store, env: EMBEDDED });
}

describe("policy explain, of a rule with http", () => {
  test("says that no sidecar reports, and what to do", async () => {
    const { stdout } = await explain(TO_CATALOG);

    expect(stdout).toContain("Ingress of shop/catalog: denied");
    expect(stdout).toContain(
      'Hint:       NetworkPolicy "shop/catalog", ingress rule 1 (spec.ingress[0]) would match, but it is about HTTP requests, and no sidecar reports for this workload: add the sidecar to it',
    );
    expect((await explain("--from 198.51.100.7 --to shop/catalog --port 80")).stdout).not.toContain("Hint:");
  });

  test("says that the sidecar decides each request, if one reports", async () => {
    await withSidecar();

    const { stdout } = await explain(TO_CATALOG);

    expect(stdout).toContain(
      [
        "Ingress of shop/catalog: allowed",
        '  Because:    NetworkPolicy "shop/catalog", ingress rule 1 (spec.ingress[0]): allow HTTP requests with method GET and path beginning with "/products/" from endpoints of service account web in namespace "shop"',
        "  Hint:       the sidecar (1.2.3) decides about each request over the connection; give --method and --path to ask about one",
      ].join("\n"),
    );
  });

  test("judges a request", async () => {
    await withSidecar();

    const allowed = await explain(`${TO_CATALOG} --path /products//7?full`);
    expect(allowed.stdout).toContain("Request:    GET /products//7?full (compared as /products/7)\n");
    expect(allowed.stdout).toContain("Verdict:    allowed\n");
    expect(allowed.stdout).toContain("Request, by the sidecar of shop/catalog: allowed\n");

    const denied = await explain(`${TO_CATALOG} --method POST --path /products/7`);
    expect(denied.stdout).toContain("Verdict:    denied\n");
    expect(denied.stdout).toContain("Ingress of shop/catalog: allowed\n");
    expect(denied.stdout).toContain("Request, by the sidecar of shop/catalog: denied\n");

    const ambiguous = await explain(`${TO_CATALOG} --path /products/..%2f7`);
    expect(ambiguous.stdout).toContain("/products/..%2f7 (ambiguous)\n");
    expect(ambiguous.stdout).toContain(
      "Hint:       the path has a dot segment next to an encoded slash, so that it matches no rule with paths\n",
    );

    const doubtful = await explain(`${TO_CATALOG} --path /private/../products/7`);
    expect(doubtful.stdout).toContain("/private/../products/7 (compared as /products/7)\n");
    expect(doubtful.stdout).toContain("Verdict:    denied\n");
    expect(doubtful.stdout).toContain(
      "Hint:       not every server reads the path as /products/7, so that it matches only rules with a prefix of /\n",
    );
  });

  test("judges the identity of the client", async () => {
    await withSidecar();
    const request = `${TO_CATALOG} --path /products/7 --principal`;

    const own = await explain(`${request} spiffe://cluster.local/ns/shop/sa/web -o json`);
    const other = await explain(`${request} spiffe://cluster.local/ns/shop/sa/other -o json`);
    const foreign = await explain(`${request} spiffe://other/ns/shop/sa/web --trust-domain other -o json`);

    const verdicts = [own, other, foreign].map(({ stdout }) => JSON.parse(stdout).packets[0].verdict);
    expect(verdicts).toEqual(["allow", "deny", "allow"]);
  });

  test("a denied connection has no request, and one without a sidecar is not judged", async () => {
    expect((await explain(`${TO_CATALOG} --path /`)).stdout).not.toContain("Request, by");

    await put(
      "networkpolicies",
      "NetworkPolicy",
      "catalog",
      { ingress: [{ action: "Allow" }] },
      {
        namespace: "shop",
      },
    );
    expect((await explain(`${TO_CATALOG} --path /`)).stdout).toContain(
      "no sidecar reports, so that requests over an allowed connection are not judged",
    );
  });

  test("the node reaches its own workloads, but its requests are judged", async () => {
    await withSidecar();

    const { stdout } = await explain("--from 192.0.2.1 --to shop/catalog --port 80 --path /");

    expect(stdout).toContain("Ingress of shop/catalog: allowed\n");
    expect(stdout).toContain("Request, by the sidecar of shop/catalog: denied\n");
  });

  test.each([
    [`${TO_CATALOG} --protocol udp --method GET`, '"--method" needs --protocol tcp'],
    [`${TO_CATALOG} --trust-domain example.org`, '"--trust-domain" needs --principal'],
  ])("refuses %s", async (words, message) => {
    const { code, stderr } = await explain(words);

    expect(code).toBe(EXIT_USAGE);
    expect(stderr).toContain(message);
  });
});
