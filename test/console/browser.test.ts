/** The browser of these tests finds what it is for: the tests of the console would otherwise pass for nothing. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { type Browser, browserProblem, openBrowser } from "../support/browser.ts";
import type { BrowserPage } from "../support/browser-page.ts";
import { testNeeding } from "../support/needs.ts";

const testPage = testNeeding(browserProblem);

const PAGE = `<!doctype html><html lang="en"><title>Page</title><link rel="icon" href="data:,"><meta name="viewport" content="width=device-width">
<main><h1>Page</h1><label for="word">Word</label> <input id="word"><button id="say">Say</button><p id="said"></p>
<p style="margin-top: 200vh"><button id="far">Far away</button></p></main>
<script>
  say.onclick = () => { said.textContent = "You said " + word.value; };
  far.onclick = () => { said.textContent = "Far"; };
  onkeydown = ({ key }) => { if (key === "?") said.textContent = "Help"; };
</script>`;
const BAD_PAGE = `<!doctype html><html lang="en"><title>Bad</title><main><h1>Bad</h1>
<p style="color: #aaa; background: #bbb">Pale</p><img src="/missing.png"><script>console.error("a word"); throw new Error("broken");</script></main>`;
const STRICT = { "content-type": "text/html", "content-security-policy": "default-src 'none'" };

describe("the browser", () => {
  let browser: Browser;
  let server: Bun.Server<undefined>;
  const pageAt = (path: string): Promise<BrowserPage> => browser.open(`http://127.0.0.1:${server.port}${path}`);
  beforeAll(async () => {
    if (browserProblem !== undefined) return;
    server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      routes: {
        "/": () => new Response(PAGE, { headers: { "content-type": "text/html" } }),
        "/bad": () => new Response(BAD_PAGE, { headers: { "content-type": "text/html" } }),
        "/strict": () => new Response(BAD_PAGE, { headers: STRICT }),
      },
      fetch: () => new Response("not there", { status: 404 }),
    });
    browser = await openBrowser();
  }, 60_000);
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
    await server?.stop(true);
  });

  testPage("clicks, types and presses keys by role and name, also beyond what is in the window", async () => {
    const page = await pageAt("/");
    await page.type("textbox", "Word", "first");
    await page.type("textbox", /^Wo/, "something");
    await page.click("button", "Say");
    await page.untilText("You said something");
    expect(await page.focus()).toBe('button "Say"');
    await page.click("button", "Far away");
    await page.untilText(/^Far$/m);
    await page.press("?");
    await page.untilText("Help");
    expect(await page.names("button")).toEqual(["Say", "Far away"]);
    expect([page.takeComplaints(), await page.violations()]).toEqual([[], []]);
  });

  testPage("complains about errors of scripts, of the console, of requests and of the content policy", async () => {
    const [bad, strict] = [await pageAt("/bad"), await pageAt("/strict")];
    const complaints = bad.takeComplaints().join("\n");
    for (const words of ["a word", "Error: broken", "404", "/missing.png"]) expect(complaints).toContain(words);
    expect(strict.takeComplaints().join("\n")).toContain("Content Security Policy");
    expect(bad.takeComplaints()).toEqual([]);
  });

  testPage("finds what not everybody can read", async () => {
    const page = await pageAt("/bad");
    const violations = (await page.violations()).map((text) => text.split(":")[0]);
    expect(violations.toSorted()).toEqual(["color-contrast", "image-alt"]);
  });

  testPage("shows a page as on another screen", async () => {
    const page = await pageAt("/");
    const look = () => page.evaluate("[innerWidth, matchMedia('(prefers-color-scheme: dark)').matches]");
    expect(await look()).toEqual([1280, false]);
    await page.show({ width: 390, height: 844, colours: "dark" });
    expect(await look()).toEqual([390, true]);
    expect((await page.screenshot()).subarray(1, 4)).toEqual(new Uint8Array(Buffer.from("PNG")));
  });
});
