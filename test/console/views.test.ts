/**
 * The page in a browser, with the console of an imitated cluster: what a real one does not have at hand. The same with real nodes and
 * pods: host.test.ts and cluster.test.ts.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { type Browser, browserProblem, openBrowser } from "../support/browser.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import { expectWell, logIn } from "../support/console-page.ts";
import { ADMIN, type ImitatedConsole, startImitatedConsole } from "../support/imitated-console.ts";
import { testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";
import type { Role } from "../support/readers.ts";
import { shopTraffic } from "../support/shop-flows.ts";

const problem = proofSize({ everyDay: "only in `make soak`", soak: undefined }) ?? browserProblem;
const testPage = testNeeding(problem);
const LIMIT = 120_000;
/** Of the imitated shop, and nothing else. */
const SHOP_ONLY: Role = {
  user: "system:serviceaccount:shop:developer",
  rules: [
    { resources: ["pods", "workloadendpoints", "networkpolicies", "flows", "explanation"], namespaces: ["shop"] },
  ],
};

function flowsOf(count: number, seconds: number) {
  const traffic = shopTraffic();
  const [now, step] = [Date.now(), (seconds * 1_000) / count];
  return Array.from({ length: count }, (_, index) => traffic.next(Math.round(now - (count - index) * step)));
}

let browser: Browser;
beforeAll(async () => {
  if (problem === undefined) browser = await openBrowser();
}, LIMIT);
afterAll(() => browser?.[Symbol.asyncDispose]());

async function openAs(cluster: ImitatedConsole, token: string, hash = ""): Promise<BrowserPage> {
  const page = await browser.open(`${cluster.address}${hash}`);
  await logIn(page, token);
  await page.untilText("Health");
  page.takeComplaints();
  return page;
}

describe("the page", () => {
  const flows = flowsOf(1_500, 1_800);
  const denied = flows.findLast(({ verdict }) => verdict === "denied");
  let cluster: ImitatedConsole;
  beforeAll(async () => {
    if (problem === undefined) cluster = await startImitatedConsole({ flows });
  }, LIMIT);
  afterAll(() => cluster?.stop());

  testPage(
    "asks for a token, refuses a wrong one, and keeps neither",
    async () => {
      const page = await browser.open(cluster.address);
      await page.untilText("Kubernetes token");
      expect(await page.focus()).toBe('textbox "Kubernetes token"');
      await logIn(page, "a-wrong-token-of-nobody");
      await page.untilText("does not accept the token");
      // A browser reports each answer of the status 4xx, whatever the page does with it. A refused login stays 401 all the same:
      // scripts, proxies and what counts attacks in logs go by the status, and 200 would tell them that the token was accepted.
      expect(page.takeComplaints().filter((text) => !/401 .*\/api\/login$/.test(text))).toEqual([]);
      await expectWell(page);
      await logIn(page, "admin");
      await page.untilText(ADMIN.user);
      const kept = await page.evaluate<string>(
        "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])",
      );
      expect(kept).not.toMatch(/a-wrong-token|admin\b/);
      await page.close();
    },
    LIMIT,
  );

  const views: readonly (readonly [title: string, hash: string, shows: string | RegExp])[] = [
    ["health", "#/health", "6 nodes"],
    ["one node", "#/health?node=node-4", "CrashLoopBackOff"],
    ["flows", "#/flows", /[\d,]+ flows/],
    ["a flow with its reason", `#/flows?flow=${denied?.id}`, "Reasoning"],
    ["flows that nothing matches", "#/flows?from=nobody", "Show all flows"],
    ["pools", "#/addresses", "10.44.0.0/21"],
    ["the map of a pool", "#/addresses/pods", "24 blocks of /26"],
    ["a block with an address", "#/addresses/pods/10.44.2.128%2F26?address=10.44.2.178", /^leaked: /m],
    ["a view that does not exist", "#/nothing", "6 nodes"],
  ];
  for (const [title, hash, shows] of views)
    testPage(
      `shows ${title} without an error, usable by everybody`,
      async () => {
        const page = await openAs(cluster, "admin", hash);
        await page.untilText(shows);
        await expectWell(page);
        await page.close();
      },
      LIMIT,
    );

  testPage(
    "is used by keyboard alone: from the filters to a flow, its reason and back",
    async () => {
      const page = await openAs(cluster, "admin", "#/flows");
      await page.untilText(/[\d,]+ flows/);
      await page.press("/");
      expect(await page.focus()).toMatch(/^(searchbox|textbox|combobox)/);
      for (let tabs = 0; !(await page.focus()).startsWith("grid"); tabs++) {
        expect(tabs).toBeLessThan(60);
        await page.press("Tab");
      }
      await page.press("ArrowDown");
      await page.press("ArrowDown");
      await page.press("Enter");
      await page.untilText("Reasoning");
      expect(await page.evaluate<string>("location.hash")).toContain("flow=");
      await page.press("Escape");
      await page.until("!location.hash.includes('flow=')", "the flow to be closed");
      expect(await page.focus()).toStartWith("grid");
      await page.press("d");
      await page.until("location.hash.includes('verdict=denied')", "denied flows only");
      await page.press("1");
      await page.untilText("6 nodes");
      await page.press("?");
      await page.untilText("Close the details");
      await expectWell(page);
      await page.press("Escape");
      await page.press("3");
      await page.untilText("10.44.0.0/21");
      expect(page.takeComplaints()).toEqual([]);
      await page.close();
    },
    LIMIT,
  );

  testPage(
    "shows what happens now, and says whose agent does not answer",
    async () => {
      cluster.silent.add("node-5");
      const page = await openAs(cluster, "admin", "#/flows?order=time");
      await page.untilText(/[\d,]+ flows/);
      await page.untilText("node-5");
      cluster.record({
        ...shopTraffic(7).next(Date.now()),
        id: "node-1-new",
        source: { kind: "outside", address: "198.51.100.99" },
      });
      await page.untilText("198.51.100.99");
      await expectWell(page);
      cluster.silent.delete("node-5");
      await page.close();
    },
    LIMIT,
  );

  testPage(
    "shows a reader of one namespace nothing of others, not even in counts",
    async () => {
      const cluster = await startImitatedConsole({ flows, readers: { developer: SHOP_ONLY } });
      const ofShop = flows.filter(({ source, destination }) =>
        [source, destination].some(({ namespace }) => namespace === "shop"),
      );
      const page = await openAs(cluster, "developer", "#/flows?range=1h");
      await page.untilText(`${ofShop.length.toLocaleString("en")} flows`);
      const shown = await page.text();
      expect(shown).not.toMatch(/payments|ledger|monitoring|grafana/);
      expect(ofShop.length).toBeLessThan(flows.length);
      await expectWell(page);
      for (const [hash, hidden] of [
        ["#/health", "you may not list them"],
        ["#/addresses", "you may not list them"],
      ] as const) {
        await page.goTo(`${cluster.address}${hash}`);
        await page.untilText(hidden);
        expect(await page.text()).not.toMatch(/node-\d|10\.44\.|payments|monitoring/);
        await expectWell(page);
      }
      await page.close();
      cluster.stop();
    },
    LIMIT,
  );

  testPage(
    "asks for a login when the token is not valid any more, and shows the same view after it",
    async () => {
      cluster.roles.set("short", { ...ADMIN, user: "short@example.org" });
      const page = await openAs(cluster, "short", "#/flows?verdict=denied");
      await page.untilText(/[\d,]+ flows/);
      cluster.roles.delete("short");
      await page.untilText("not valid any more");
      expect(await page.text()).not.toMatch(/10\.44\.|shop\//);
      page.takeComplaints();
      await expectWell(page);
      await logIn(page, "admin");
      await page.untilText(/[\d,]+ flows/);
      expect(await page.evaluate<string>("location.hash")).toBe("#/flows?verdict=denied");
      await page.close();
    },
    LIMIT,
  );

  testPage(
    "ends with a logout, in all tabs",
    async () => {
      const page = await openAs(cluster, "admin", "#/health");
      await page.untilText("6 nodes");
      await page.click("button", "Log out");
      await page.untilText("You are logged out");
      expect(await page.evaluate<number>("fetch('/api/health').then(({ status }) => status)")).toBe(401);
      expect(await page.text()).not.toContain("node-1");
      await page.close();
    },
    LIMIT,
  );
});

describe("a session", () => {
  testPage(
    "that nobody uses ends, although its page is open and follows",
    async () => {
      const cluster = await startImitatedConsole({ sessionLimits: { idleMilliseconds: 4_000 } });
      const page = await openAs(cluster, "admin", "#/health");
      await page.untilText("6 nodes");
      await page.untilText("it was not used for");
      expect(await page.text()).not.toContain("node-1");
      page.takeComplaints();
      await expectWell(page);
      await page.close();
      cluster.stop();
    },
    LIMIT,
  );

  testPage(
    "does not outlive the console: the page says that nobody answers, and asks for a login when it is back",
    async () => {
      const cluster = await startImitatedConsole();
      const page = await openAs(cluster, "admin", "#/health");
      await page.untilText("6 nodes");
      cluster.stop();
      await page.untilText(/does not answer|was lost|has ended/);
      await cluster.start();
      await page.untilText("Log in");
      await page.close();
      cluster.stop();
    },
    LIMIT,
  );
});

describe("a cluster with nothing in it", () => {
  testPage(
    "has views that say what to do",
    async () => {
      const cluster = await startImitatedConsole({ store: openMemory(), objects: [], flows: [] });
      for (const [hash, command] of [
        ["#/health", "vendorctl install"],
        ["#/flows", "vendorctl patch nodeagentconfiguration"],
        ["#/addresses", "vendorctl"],
      ] as const) {
        const page = await openAs(cluster, "admin", hash);
        await page.untilText(command);
        await expectWell(page);
        await page.close();
      }
      cluster.stop();
    },
    LIMIT,
  );
});

describe("100,000 flows", () => {
  testPage(
    "are in one table, which scrolls to its end, filters and goes on",
    async () => {
      const cluster = await startImitatedConsole({ flows: flowsOf(100_000, 3_000) });
      const page = await openAs(cluster, "admin", "#/flows?range=1h");
      await page.untilText("100,000 flows", LIMIT);
      expect(await page.evaluate<number>("document.querySelectorAll('[role=row]').length")).toBeLessThan(100);
      await page.evaluate("document.querySelector('[role=grid]').focus()");
      await page.press("End");
      await page.until("document.querySelector('[aria-rowindex=\"100001\"]') !== null", "the last row");
      await page.press("d");
      await page.until(
        "document.querySelector('.status-line')?.innerText.includes('100,000') === false",
        "fewer flows",
        LIMIT,
      );
      await expectWell(page);
      await page.close();
      cluster.stop();
    },
    LIMIT,
  );
});
