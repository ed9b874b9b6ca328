/**
 * Debian's chromium, without a window, over its own protocol (Chrome DevTools Protocol) on a pair of pipes: it needs no port, which others
 * on the machine could use too, and it ends when the test does.
 */
import { spawn } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { type BrowserPage, type Look, openPage } from "./browser-page.ts";
import { protocolOf } from "./browser-protocol.ts";
import { program } from "./needs.ts";
import { pollUntil } from "./poll.ts";
import { temporaryDirectory } from "./temporary-directory.ts";

export const browserProblem = program("chromium");

export interface Browser extends AsyncDisposable {
  /** A page with cookies and storage of its own, at this address. */
  open(address: string, look?: Partial<Look>): Promise<BrowserPage>;
  /** Bytes of its processes that are in no other process. */
  privateBytes(): Promise<number>;
}

export interface BrowserOptions {
  /** Runs in this network namespace; the path of it. */
  readonly netns?: string;
  /** PEM: servers with this certificate, or with one that it has signed and that is sent too, are trusted. */
  readonly certificate?: string;
  /** `Host` of addresses -> the address that is connected to, such as `console.example.org` -> `127.0.0.1`. */
  readonly hosts?: Readonly<Record<string, string>>;
}

const FLAGS = [
  "--headless=new",
  // It runs as root, and opens what a test serves alone.
  "--no-sandbox",
  "--remote-debugging-pipe",
  "--disable-gpu",
  "--disable-dev-shm-usage",
  "--disable-extensions",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--no-first-run",
  "--no-proxy-server",
  "--hide-scrollbars",
  "--force-color-profile=srgb",
];

export async function openBrowser({ netns, certificate, hosts = {} }: BrowserOptions = {}): Promise<Browser> {
  const directory = temporaryDirectory("browser");
  const rules = Object.entries(hosts).map(([host, address]) => `MAP ${host} ${address}`);
  const command = [
    ...(netns === undefined ? [] : ["nsenter", `--net=${netns}`, "--"]),
    "chromium",
    ...FLAGS,
    `--user-data-dir=${directory.path}`,
    ...(certificate === undefined ? [] : [`--ignore-certificate-errors-spki-list=${keyHash(certificate)}`]),
    ...(rules.length === 0 ? [] : [`--host-resolver-rules=${rules.join(",")}`]),
  ];
  const [file = "", ...words] = command;
  const child = spawn(file, words, {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
    // Without a bus of the desktop there is nobody to ask about it.
    env: { ...process.env, HOME: directory.path, DBUS_SESSION_BUS_ADDRESS: "disabled:" },
  });
  const protocol = protocolOf(child);
  await protocol.send("Browser.getVersion");
  return {
    open: (address, look = {}) => openPage(protocol, address, look),
    privateBytes: () => privateBytes(child.pid ?? 0),
    async [Symbol.asyncDispose]() {
      const ended = Promise.withResolvers<void>();
      child.once("exit", () => ended.resolve());
      if (child.exitCode !== null) ended.resolve();
      protocol.send("Browser.close").catch(() => child.kill("SIGKILL"));
      await ended.promise;
      // Its other processes write until they have seen that.
      await pollUntil(() => {
        directory.remove();
        return true;
      }, "the directory of the browser to be removed");
    },
  };
}

/** As chromium names a key: the hash of what the certificate says about it. */
function keyHash(certificate: string): string {
  const key = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
  return new Bun.CryptoHasher("sha256").update(key).digest("base64");
}

async function privateBytes(pid: number): Promise<number> {
  const children = await Bun.file(`/proc/${pid}/task/${pid}/children`).text();
  const rollup = await Bun.file(`/proc/${pid}/smaps_rollup`).text();
  const own = Array.from(rollup.matchAll(/^Private_\w+: +(\d+) kB$/gm), ([, kilobytes]) => Number(kilobytes) * 1024);
  const others = await Promise.all(
    children
      .trim()
      .split(" ")
      .filter(Boolean)
      .map((child) => privateBytes(Number(child))),
  );
  return [...own, ...others].reduce((sum, bytes) => sum + bytes, 0);
}
