/** What pages of others get from the console when a real browser of somebody who is logged in visits them: nothing. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Browser, browserProblem, openBrowser } from "../support/browser.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import { logIn } from "../support/console-page.ts";
import { ADMIN, type ImitatedConsole, startImitatedConsole } from "../support/imitated-console.ts";
import { testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";
import { shopTraffic } from "../support/shop-flows.ts";

const problem = proofSize({ everyDay: "only in `make soak`", soak: undefined }) ?? browserProblem;
const testPage = testNeeding(problem);
const LIMIT = 60_000;
const FOREIGN = "console.example.net";
const HTML = { headers: { "content-type": "text/html" } };
const SCRIPT = "<img src=/x onerror=\"window.ran = 'image'\"><script>window.ran = 'script'</script>";

describe("somebody who is logged in", () => {
  let cluster: ImitatedConsole;
  let browser: Browser;
  /** Another port of the same host is of the same site: cookies go there and from there. */
  let neighbour: Bun.Server<undefined>;
  let seen: string[] = [];
  let page: BrowserPage;
  beforeAll(async () => {
    if (problem !== undefined) return;
    cluster = await startImitatedConsole();
    neighbour = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch(request) {
        seen.push(JSON.stringify([...request.headers]));
        return new Response('<!doctype html><html lang="en"><title>neighbour</title><main>neighbour</main>', HTML);
      },
    });
    browser = await openBrowser({ hosts: { [FOREIGN]: "127.0.0.1" } });
    page = await browser.open(`${cluster.address}#/flows`);
    await logIn(page, "admin");
    await page.untilText(ADMIN.user);
  }, LIMIT);
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await neighbour?.stop(true);
    cluster?.stop();
  });

  const asNeighbour = <Value>(expression: string) => page.evaluate<Value>(expression);
  const visitNeighbour = async () => {
    seen = [];
    await page.goTo(`http://127.0.0.1:${neighbour.port}/`);
  };
  const comeBack = async () => {
    await page.goTo(`${cluster.address}#/flows`);
    await page.untilText(ADMIN.user);
    page.takeComplaints();
  };

  testPage(
    "is not spoken for by a page of another origin, which also learns nothing",
    async () => {
      await visitNeighbour();
      const outcome = (path: string, options: object) =>
        asNeighbour<string>(
          `fetch(${JSON.stringify(`${cluster.address}${path}`)}, {credentials: "include", ...${JSON.stringify(options)}}).then(({status, type}) => status + " " + type, ({name}) => name)`,
        );
      expect(await outcome("api/health", {})).toBe("TypeError");
      expect(await outcome("api/logout", { method: "POST", body: "{}" })).toBe("TypeError");
      expect(await outcome("api/health", { mode: "no-cors" })).toBe("TypeError");
      expect(await outcome("api/logout", { method: "POST", mode: "no-cors", body: "{}" })).toBe("TypeError");
      const opened = `new Promise((resolve) => { const socket = new WebSocket("${cluster.address.replace("http", "ws")}api/health"); socket.onopen = () => resolve("open"); socket.onerror = () => resolve("refused"); })`;
      expect(await asNeighbour<string>(opened)).toBe("refused");
      // The cookie goes to all ports of a host, the CSRF token does not.
      const csrfToken = /"csrf-?token"/i;
      expect(seen.join("\n")).not.toMatch(csrfToken);
      expect(await asNeighbour<string>("JSON.stringify({...localStorage})")).toBe("{}");
      await comeBack();
    },
    LIMIT,
  );

  testPage(
    "does not click on the console in a frame",
    async () => {
      await visitNeighbour();
      page.takeComplaints();
      await asNeighbour(
        `new Promise((resolve) => { const frame = document.createElement("iframe"); frame.onload = resolve; frame.src = ${JSON.stringify(cluster.address)}; document.body.append(frame); }).then(() => undefined)`,
      );
      const complaints = page.takeComplaints().join("\n");
      expect(complaints).toMatch(/frame-ancestors|X-Frame-Options|403/);
      await comeBack();
    },
    LIMIT,
  );

  testPage(
    "reaches no console by the name of a stranger that leads to its address",
    async () => {
      const { port } = new URL(cluster.address);
      const stranger = await browser.open(`http://${FOREIGN}:${port}/`);
      expect(await stranger.text()).toContain("This console is not called");
      await stranger.close();
    },
    LIMIT,
  );

  testPage(
    "runs no script of a name in a flow, and none that somebody slips into the page",
    async () => {
      cluster.record({
        ...shopTraffic(9).next(Date.now()),
        ...{ id: "node-1-evil", verdict: "denied", state: "denied" },
        source: { kind: "pod", address: "10.44.0.99", namespace: "shop", name: SCRIPT, labels: { app: SCRIPT } },
      });
      await page.goTo(`${cluster.address}#/flows?flow=node-1-evil`);
      await page.untilText("Reasoning");
      expect(await page.text()).toContain(SCRIPT);
      expect(page.takeComplaints()).toEqual([]);
      const slipIn = (statement: string) =>
        page.evaluate<string>(`(() => { try { ${statement}; return "done"; } catch ({ name }) { return name; } })()`);
      expect(await slipIn(`document.body.innerHTML = ${JSON.stringify(SCRIPT)}`)).toBe("TypeError");
      expect(await slipIn(`document.createElement("script").textContent = "window.ran = 1"`)).toBe("TypeError");
      await slipIn(`const image = new Image(); image.setAttribute("onerror", "window.ran = 2"); image.src = "/x"`);
      expect(await page.evaluate("typeof window.ran")).toBe("undefined");
      expect(page.takeComplaints().join("\n")).toMatch(/Content Security Policy|Trusted/);
    },
    LIMIT,
  );
});
