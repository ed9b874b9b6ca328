/**
 * The console of an installed cluster in a real browser: logged in with tokens of Kubernetes, by the roles of docs/console.md, through
 * the Service and the certificate that the operator and the controllers have made.
 */
import { expect } from "bun:test";
import { FLOWS_API, identity } from "../../src/identity.ts";
import { CONSOLE, FLOW_READER, TLS_KEYS } from "../../src/release/workloads/names.ts";
import { type Browser, openBrowser } from "../support/browser.ts";
import { expectWell, logIn } from "../support/console-page.ts";
import { documentsOfPage } from "../support/docs-page.ts";
import { POD_PORT, podManifest } from "../support/kube-pods.ts";
import { untilInstalled } from "../support/operator-install.ts";
import { NAMESPACE } from "../support/pods-in-namespace.ts";
import { pollUntil } from "../support/poll.ts";
import type { InstalledCluster } from "./installed-tests.ts";

type TestCluster = (title: string, run: () => Promise<void>) => void;

const { systemNamespace: SYSTEM } = identity;
const ORDERS = "orders";
const SECRET = "secret-place";
const SERVICE = `${CONSOLE}.${SYSTEM}.svc`;
const CLOSED = {
  ...{ apiVersion: "networking.k8s.io/v1", kind: "NetworkPolicy", metadata: { name: "closed", namespace: ORDERS } },
  spec: { podSelector: { matchLabels: { app: "stock" } }, policyTypes: ["Ingress"], ingress: [] },
};

/** Flows are on. */
export function installedConsoleTests(testCluster: TestCluster, site: () => InstalledCluster): void {
  const kubectl = (...args: readonly string[]) => site().server.kubectl(args);
  const connects = async (namespace: string) => {
    const { status } = await site().server.get<{ status: { podIP: string } }>("pod", "stock", `--namespace=${ORDERS}`);
    return kubectl(
      ...["exec", "buyer", `--namespace=${namespace}`, "--", "/agnhost", "connect"],
      ...[`${status.podIP}:${POD_PORT}`, "--timeout=1s"],
    ).then(
      () => true,
      () => false,
    );
  };

  testCluster("has a console when it is switched on", async () => {
    const { server } = site();
    await kubectl("patch", "installation/default", "--type=merge", '--patch={"spec":{"console":{"mode":"Enabled"}}}');
    for (const name of [ORDERS, SECRET]) await server.createNamespace(name);
    const pods = [
      { name: "stock", namespace: ORDERS, labels: { app: "stock" }, spec: { nodeName: "node-2" } },
      { name: "buyer", namespace: ORDERS, labels: { app: "buyer" }, spec: { nodeName: "node-1" } },
      { name: "buyer", namespace: SECRET, labels: { app: "buyer" }, spec: { nodeName: "node-1" } },
    ];
    await server.apply([...pods.map(podManifest), JSON.stringify(CLOSED)].join("\n---\n"));
    for (const namespace of [ORDERS, SECRET])
      await kubectl("wait", "--for=condition=Ready", "pods", "--all", `--namespace=${namespace}`, "--timeout=60s");
    await createReaders(kubectl, server.apply);
    await untilInstalled(server);
    await kubectl(
      "wait",
      `deployment/${CONSOLE}`,
      `--namespace=${SYSTEM}`,
      "--for=condition=Available",
      "--timeout=90s",
    );
  });

  testCluster("shows in a browser what was denied, applies the draft, and shows what is allowed then", async () => {
    await using browser = await openBrowserOnNode(site());
    const flows = `/apis/${FLOWS_API.group}/${FLOWS_API.version}/flows`;
    const isSeen = async (namespace: string) =>
      (await kubectl("get", "--raw", `${flows}?verdict=denied&from=${namespace}/buyer`)).includes('{"flow"');
    for (const namespace of [ORDERS, SECRET])
      await pollUntil(async () => !(await connects(namespace)) && (await isSeen(namespace)), "a denied flow", 90_000);
    const page = await browser.open(`https://${SERVICE}/#/flows?verdict=denied`);
    await logIn(page, "a-token-of-nobody");
    await page.untilText("does not accept the token");
    await logIn(page, await tokenOf(kubectl, "clerk"));
    await page.click("row", new RegExp(`denied.*${ORDERS}/?\\s?buyer.*stock`));
    await page.untilText("Reasoning");
    page.takeComplaints();
    await page.click("button", "Draft a policy that allows it");
    await page.untilText("the judge has tried it", 60_000);
    await expectWell(page);
    await page.click("button", "Apply");
    await page.click("button", "Apply it");
    await page.untilText(/created/);
    await pollUntil(() => connects(ORDERS), "the connection to be open");
    expect(await connects(SECRET)).toBe(false);
    await page.goTo(`https://${SERVICE}/#/flows?from=${ORDERS}%2Fbuyer&verdict=allowed`);
    await page.click("row", /allowed.*buyer.*stock/);
    await page.untilText("Reasoning");
    for (const [hash, shows] of [
      ["#/health", "2 nodes"],
      ["#/addresses", /10\.24[45]\./],
    ] as const) {
      await page.goTo(`https://${SERVICE}/${hash}`);
      await page.untilText(shows);
      await expectWell(page);
    }
  });

  testCluster("shows a reader of one namespace nothing else, not even in counts", async () => {
    await using browser = await openBrowserOnNode(site());
    const page = await browser.open(`https://${SERVICE}/#/flows?range=6h`);
    await logIn(page, await tokenOf(kubectl, "visitor"));
    await page.untilText(/[1-9]\d* flows?\b/);
    page.takeComplaints();
    const shown = await page.evaluate<string>(
      "fetch('/api/flows', {headers: {'x-csrf-token': Object.values(localStorage).join(' ').match(/[\\w-]{43}/)?.[0] ?? ''}}).then((answer) => answer.text())",
    );
    expect(shown).toContain(`"${ORDERS}"`);
    for (const hidden of [SECRET, `"${NAMESPACE}"`]) expect(shown).not.toContain(hidden);
    for (const hash of ["#/health", "#/addresses"]) {
      await page.goTo(`https://${SERVICE}/${hash}`);
      await page.untilText("you may not list them");
      expect(await page.text()).not.toMatch(new RegExp(`node-[12]|${SECRET}|10\\.244\\.`));
      await expectWell(page);
    }
    // Without the role no flow, and the words of the API server.
    await kubectl("delete", "clusterrolebinding", "console-visitor");
    await page.goTo(`https://${SERVICE}/#/flows?range=1h`);
    await page.untilText(/cannot|forbidden|may not/i, 120_000);
  });

  testCluster("has nothing of the console left when it is switched off", async () => {
    await kubectl("delete", "namespace", ORDERS, SECRET, "--timeout=60s");
    await kubectl("delete", "clusterrolebinding", "console-clerk");
    await kubectl("delete", "clusterrole", "console-reader", "console-writer");
    await kubectl("patch", "installation/default", "--type=merge", '--patch={"spec":{"console":{"mode":"Disabled"}}}');
    const left = () =>
      kubectl("get", "deployments,services,secrets,configmaps", `--namespace=${SYSTEM}`, "--output=name");
    await pollUntil(async () => !(await left()).includes(`/${CONSOLE}\n`), "the console to be removed", 60_000);
    await untilInstalled(site().server);
  });
}

type RunKubectl = (...args: readonly string[]) => Promise<string>;

/** "clerk" may do what docs/console.md says, "visitor" lists pods of one namespace. */
async function createReaders(kubectl: RunKubectl, apply: (text: string) => Promise<unknown>): Promise<void> {
  const roles = documentsOfPage("console.md").get("Roles of readers");
  if (roles === undefined) throw new Error('docs/console.md has no documents in the section "Roles of readers"');
  await apply(roles);
  const inOrders = `--namespace=${ORDERS}`;
  for (const name of ["clerk", "visitor"]) await kubectl("create", "serviceaccount", name, inOrders);
  const account = (name: string) => `--serviceaccount=${ORDERS}:${name}`;
  await kubectl("create", "clusterrolebinding", "console-clerk", "--clusterrole=console-reader", account("clerk"));
  await kubectl("create", "rolebinding", "console-clerk", inOrders, "--clusterrole=console-writer", account("clerk"));
  await kubectl("create", "role", "visitor", inOrders, "--verb=list", "--resource=pods");
  await kubectl("create", "rolebinding", "visitor", inOrders, "--role=visitor", account("visitor"));
  await kubectl("create", "clusterrolebinding", "console-visitor", `--clusterrole=${FLOW_READER}`, account("visitor"));
}

async function tokenOf(kubectl: RunKubectl, name: string): Promise<string> {
  return (await kubectl("create", "token", name, `--namespace=${ORDERS}`)).trim();
}

/** A browser that trusts the certificate of the console alone, where the address of the Service leads to it. */
async function openBrowserOnNode({ server, nodes: [node] }: InstalledCluster): Promise<Browser> {
  if (node === undefined) throw new Error("The cluster has no node");
  const inSystem = `--namespace=${SYSTEM}`;
  const { spec } = await server.get<{ spec: { clusterIP: string } }>("service", CONSOLE, inSystem);
  const { data } = await server.get<{ data: Readonly<Record<string, string>> }>("secret", CONSOLE, inSystem);
  const certificate = Buffer.from(data[TLS_KEYS.certificate] ?? "", "base64").toString();
  return openBrowser({ netns: node.host.netns, certificate, hosts: { [SERVICE]: spec.clusterIP } });
}
