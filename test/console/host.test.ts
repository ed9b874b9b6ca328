/** `vendorctl console` on a real host in a real browser: pods that talk, a node agent that judges them, and the embedded datastore. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type DemoEnvironment, openEnvironment, PLUGIN_DIRECTORY } from "../../scripts/demo/environment.ts";
import { type LiveHost, openLiveHost } from "../../scripts/demo/live-host.ts";
import { identity } from "../../src/identity.ts";
import { type Browser, browserProblem, openBrowser } from "../support/browser.ts";
import { expectWell } from "../support/console-page.ts";
import { hostProblem } from "../support/host.ts";
import { startHostConsole } from "../support/host-console.ts";
import { testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";

const needs = [hostProblem(), browserProblem];
const isSkipped = needs.some((need) => need !== undefined);
const testHost = testNeeding(...needs);
const LIMIT = 180_000;
/** Whether the button that copies a drafted policy covers some of it. */
const COVERS_POLICY = `(() => {
  const [text, button] = [".yaml pre", ".yaml button"].map((each) => document.querySelector(each).getBoundingClientRect());
  return button.left < text.right && button.right > text.left && button.top < text.bottom && button.bottom > text.top;
})()`;

describe(`${identity.adminTool} console`, () => {
  let demo: DemoEnvironment;
  let live: LiveHost;
  let browser: Browser;
  const stop = new AbortController();
  let talking: Promise<void> = Promise.resolve();
  beforeAll(async () => {
    if (isSkipped) return;
    demo = await openEnvironment("embedded");
    live = await openLiveHost(demo);
    talking = live.talk(stop.signal);
    browser = await openBrowser({ netns: demo.host.netns });
  }, LIMIT);
  afterAll(async () => {
    stop.abort();
    await talking;
    live?.[Symbol.dispose]();
    await browser?.[Symbol.asyncDispose]();
    await demo?.close();
  }, LIMIT);

  testHost(
    "shows a denied flow and its reason, applies the drafted policy, and shows that it is allowed",
    async () => {
      expect(await live.connect("report", "db")).toBe("closed");
      await using console = await startHostConsole(demo.host, `${PLUGIN_DIRECTORY}/${identity.adminTool}`, ["--write"]);
      const page = await browser.open(console.address());
      await page.untilText("Parts");
      expect(await page.evaluate<string>("location.href")).not.toContain("token");
      await page.press("2");
      await page.click("button", /^denied/);
      await page.until("document.querySelector('.cell-0') !== null", "a denied flow");
      await page.click("row", /report.*db.*5432/);
      await page.untilText("Reasoning");
      await page.untilText("end of tier");
      await page.click("button", "Draft a policy that allows it");
      await page.untilText("the judge has tried it");
      await expectWell(page);
      // However long its lines are: the button is beside the text.
      expect(await page.evaluate<boolean>(COVERS_POLICY)).toBe(false);
      expect(await live.connect("report", "db")).toBe("closed");
      await page.click("button", "Apply");
      await page.click("button", "Apply it");
      await page.untilText(/created/);
      await pollUntil(async () => (await live.connect("report", "db")) === "open", "the connection to be open");
      await page.click("link", "Show the flows between these two");
      await page.untilText("allowed");
      await page.click("row", /^allowed.*report.*db/);
      await page.untilText("Reasoning");
      await expectWell(page);
      await page.close();
    },
    LIMIT,
  );

  testHost(
    "lets nobody in twice by one address, and is read-only unless it may write",
    async () => {
      await using console = await startHostConsole(demo.host, `${PLUGIN_DIRECTORY}/${identity.adminTool}`);
      const address = console.address();
      const page = await browser.open(`${address}`);
      await page.untilText("Parts");
      const another = await browser.open(address);
      await another.untilText("was opened before");
      another.takeComplaints();
      await expectWell(another);
      await another.close();
      await page.press("2");
      await page.untilText(/[\d,]+ flows/);
      await page.press("3");
      await page.untilText("10.244.0.0/24");
      await expectWell(page);
      await page.click("button", "Log out");
      await page.untilText("You are logged out");
      // Another address is printed for the next login.
      await pollUntil(() => console.address() !== address, "another address");
      await page.close();
    },
    LIMIT,
  );

  testHost(
    "says that the agent is gone, and goes on when it is back",
    async () => {
      await using console = await startHostConsole(demo.host, `${PLUGIN_DIRECTORY}/${identity.adminTool}`);
      const page = await browser.open(console.address());
      await page.untilText("Parts");
      await page.press("2");
      await page.untilText("live");
      await live.agent.kill();
      await page.untilText(/Asking again/);
      await page.press("1");
      await page.untilText("node agent: not running");
      page.takeComplaints();
      await expectWell(page);
      live.agent.start();
      await page.press("2");
      await page.untilText("live", 60_000);
      await page.close();
    },
    LIMIT,
  );
});
