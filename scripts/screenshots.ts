/**
 * `make screenshots`: writes a picture of each view of the console to docs/images, by a real browser from the console of an imitated
 * cluster, so that they are the same cluster each time. Fails if a picture is too large for the repository.
 *   bun scripts/screenshots.ts [--out DIRECTORY]
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, browserProblem, openBrowser } from "../test/support/browser.ts";
import type { Look } from "../test/support/browser-page.ts";
import { logIn } from "../test/support/console-page.ts";
import { type ImitatedConsole, startImitatedConsole } from "../test/support/imitated-console.ts";
import { program } from "../test/support/needs.ts";
import { shopTraffic } from "../test/support/shop-flows.ts";
import { installPrograms } from "./programs/install.ts";

interface Picture {
  readonly name: string;
  /** Of the view. */
  readonly hash: string;
  /** Text that is there when it is complete. */
  readonly shows: string | RegExp;
  readonly look?: Partial<Look>;
  /** Clicked on before. */
  readonly button?: string;
  /** Text that is there after that. */
  readonly afterwards?: string;
}

const MOST_BYTES = 150_000;
const PHONE = { width: 390, height: 844 };
const FLOWS = 3_000;
const SECONDS = 1_500;
/** Of "web", which asks the ledger. */
const DENIED = /ledger/;

const { values } = parseArgs({ options: { out: { type: "string", default: "docs/images" } } });
await installPrograms(["chromium", "pngquant"]);
const missing = [browserProblem, program("pngquant")].filter((problem) => problem !== undefined);
if (missing.length > 0) {
  console.error(`Cannot make pictures: ${missing.join(", ")}`);
  process.exit(1);
}
process.exit(await makePictures(values.out));

async function makePictures(directory: string): Promise<number> {
  const traffic = shopTraffic();
  const now = Date.now();
  const flows = Array.from({ length: FLOWS }, (_, index) =>
    traffic.next(now - Math.round(((FLOWS - index) * SECONDS * 1_000) / FLOWS)),
  );
  const denied = flows.findLast(
    ({ verdict, destination }) => verdict === "denied" && DENIED.test(destination.name ?? ""),
  );
  const cluster = await startImitatedConsole({ flows });
  await using browser = await openBrowser();
  mkdirSync(directory, { recursive: true });
  let tooLarge = 0;
  for (const picture of pictures(denied?.id ?? "")) {
    const file = join(directory, `${picture.name}.png`);
    await Bun.write(file, await take(browser, cluster, picture));
    // With 256 colours: nobody sees the difference, and it is a third as large.
    Bun.spawnSync(["pngquant", "--force", "--speed", "1", "--strip", "--output", file, file]);
    const bytes = Bun.file(file).size;
    if (bytes > MOST_BYTES) tooLarge += 1;
    console.log(
      `${file}: ${Math.ceil(bytes / 1000)} kB${bytes > MOST_BYTES ? `, more than ${MOST_BYTES / 1000}` : ""}`,
    );
  }
  cluster.stop();
  return tooLarge === 0 ? 0 : 1;
}

function pictures(denied: string): readonly Picture[] {
  const draft = { button: "Draft a policy that allows it", afterwards: "the judge has tried it" };
  return [
    { name: "login", hash: "", shows: "Kubernetes token" },
    { name: "health", hash: "#/health", shows: "6 nodes" },
    { name: "health-dark", hash: "#/health", shows: "6 nodes", look: { colours: "dark" } },
    { name: "flows", hash: "#/flows", shows: /[\d,]+ flows/ },
    { name: "flow", hash: `#/flows?flow=${denied}`, shows: "Reasoning", ...draft },
    { name: "flow-phone", hash: `#/flows?flow=${denied}`, shows: "Reasoning", look: PHONE },
    { name: "pools", hash: "#/addresses", shows: "10.44.0.0/21" },
    { name: "addresses", hash: "#/addresses/pods/10.44.2.128%2F26?address=10.44.2.178", shows: /^leaked$/m },
  ];
}

async function take(browser: Browser, cluster: ImitatedConsole, picture: Picture): Promise<Uint8Array> {
  const { hash, shows, look = {}, button, afterwards } = picture;
  const page = await browser.open(`${cluster.address}${hash}`, look);
  if (hash !== "") await logIn(page, "admin");
  await page.untilText(shows);
  if (button !== undefined) await page.click("button", button);
  if (afterwards !== undefined) await page.untilText(afterwards);
  // No pointer rests on anything.
  await page.rest();
  const picturesOfPage = await page.screenshot();
  await page.close();
  return picturesOfPage;
}
