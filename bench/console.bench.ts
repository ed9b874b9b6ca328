/**
 * The console at 5,000 nodes and 250,000 addresses: time to the first view, and memory of server and page. The records are in a real
 * etcd, the browser and the console's server are real; the API server with its Nodes and pods of agents is imitated.
 */
import { gzipSync } from "node:zlib";
import type { ClusterSize } from "../sim/scale/cluster-records.ts";
import { loadPage } from "../src/console/page-bundle.ts";
import { browserProblem, openBrowser } from "../test/support/browser.ts";
import type { BrowserPage } from "../test/support/browser-page.ts";
import { logIn } from "../test/support/console-page.ts";
import { hasEtcd, startEtcd } from "../test/support/etcd.ts";
import { startConsoleServer, startScaleApi } from "./support/console-load.ts";
import { processMemory } from "./support/process-memory.ts";
import { writeResults } from "./support/report.ts";
import { openScaleEtcd } from "./support/scale-etcd.ts";
import { writeCluster } from "./support/scale-load.ts";

const NODES = Number(process.env["BENCH_NODES"] ?? 5_000);
const SIZE: ClusterSize = { nodes: NODES, podsPerNode: 50, policies: 1_000 };
const LIMIT = 300_000;

const problem = browserProblem ?? (hasEtcd ? undefined : "needs the program etcd");
if (problem === undefined) await measure();
else console.log(`skipped: ${problem}`);

async function measure(): Promise<void> {
  const etcd = await startEtcd({ flags: ["--quota-backend-bytes=8000000000"] });
  try {
    const [endpoint = ""] = etcd.endpoints;
    const written = await writeCluster(await openScaleEtcd(endpoint, etcd.members[0]?.pid ?? 0), SIZE);
    console.log(`${written.count} records, ${megabytes(written.bytes)}`);
    using api = startScaleApi(NODES);
    await using server = await startConsoleServer(api.address, endpoint);
    await using browser = await openBrowser();
    const before = processMemory(server.pid).residentBytes;
    const page = await browser.open(server.address);
    const views = await visit(page, server.pid);
    const browserBytes = await browser.privateBytes();
    const sizes = await pageSizes();
    const found = { before, views, browserBytes, sizes };
    print(found);
    await writeResults("console", { nodes: NODES, addresses: NODES * 51, ...found });
  } finally {
    await etcd.stop();
  }
}

interface View {
  readonly title: string;
  /** From the click, or the login, to what it shows. */
  readonly milliseconds: number;
  readonly serverBytes: number;
  readonly scriptBytes: number;
}

/** With a comma or without. */
function counted(what: string): RegExp {
  return new RegExp(`\\b${NODES.toLocaleString("en").replace(",", ",?")} ${what}`);
}

async function visit(page: BrowserPage, pid: number): Promise<readonly View[]> {
  const views: View[] = [];
  const measureView = async (title: string, act: () => Promise<void>, shows: string | RegExp) => {
    const began = performance.now();
    await act();
    await page.untilText(shows, LIMIT);
    const milliseconds = performance.now() - began;
    const scriptBytes = await page.scriptBytes();
    views.push({ title, milliseconds, scriptBytes, serverBytes: processMemory(pid).residentBytes });
  };
  await page.untilText("Log in");
  await measureView("health, from the login", () => logIn(page, "reader"), counted("nodes"));
  const origin = await page.evaluate<string>("location.origin");
  const to = (hash: string) => () => page.evaluate<void>(`void (location.hash = ${JSON.stringify(hash)})`);
  await measureView("pools", to("#/addresses"), "10.0.0.0/8");
  await measureView("the map of the pool", to("#/addresses/pods"), counted("blocks"));
  await measureView("a block", to("#/addresses/pods/10.0.16.0%2F26"), "10.0.16.0/26");
  await measureView("an address", to("#/addresses/pods/10.0.16.0%2F26?address=10.0.16.5"), "Handle");
  await measureView("health again", to("#/health"), counted("nodes"));
  const again = await measureReload(page, origin);
  return [...views, { ...again, serverBytes: processMemory(pid).residentBytes }];
}

/** With the page in the cache of the browser, and a session. */
async function measureReload(page: BrowserPage, origin: string): Promise<Omit<View, "serverBytes">> {
  await page.goTo("about:blank");
  const began = performance.now();
  await page.goTo(`${origin}/#/health`);
  await page.untilText(counted("nodes"), LIMIT);
  return {
    ...{ title: "health, page loaded again", milliseconds: performance.now() - began },
    scriptBytes: await page.scriptBytes(),
  };
}

async function pageSizes() {
  const { html, assets } = await loadPage();
  const parts = [html, ...Array.from(assets.values(), ({ body }) => String(body))];
  const sum = (lengths: readonly number[]) => lengths.reduce((all, length) => all + length, 0);
  return {
    plainBytes: sum(parts.map((text) => Buffer.byteLength(text))),
    compressedBytes: sum(parts.map((text) => gzipSync(text).length)),
  };
}

interface Found {
  readonly before: number;
  readonly views: readonly View[];
  readonly browserBytes: number;
  readonly sizes: { readonly plainBytes: number; readonly compressedBytes: number };
}

function print({ before, views, browserBytes, sizes }: Found): void {
  console.log(`page: ${sizes.compressedBytes} bytes compressed, ${sizes.plainBytes} plain`);
  console.log(`server before a login: ${megabytes(before)}; all processes of the browser: ${megabytes(browserBytes)}`);
  console.log("| view | ms | server | page |\n|---|---:|---:|---:|");
  for (const { title, milliseconds, serverBytes, scriptBytes } of views)
    console.log(`| ${title} | ${milliseconds.toFixed(0)} | ${megabytes(serverBytes)} | ${megabytes(scriptBytes)} |`);
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(0)} MB`;
}
