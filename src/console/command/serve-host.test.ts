import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createServer } from "node:net";
import { runInside } from "../../../test/support/admin-context.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { rejectionOf } from "../../../test/support/thrown-by.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { isObject } from "../../model/shape.ts";
import type { PolicyDraft } from "../api/policy-draft.ts";
import type { ConsoleSource } from "../source.ts";
import { type HostConsole, type HostConsoleContext, serveHost } from "./serve-host.ts";

const DRAFT: PolicyDraft = { yaml: "kind: NetworkPolicy", notes: [], verdict: "allowed", command: "" };

let out: string[];
let errors: string[];
let stop: AbortController;
let parent: number;
let opened: number;
let failure: Error | undefined;
let ended: Promise<number>;

const source: ConsoleSource = {
  user: "root",
  rights: async () => "everything",
  health: async () => ({ at: 1, state: "ok", parts: [], nodes: [], problems: [], hidden: [] }),
  async *flows() {},
  async *explanation() {},
  pools: async () => ({ at: 1, pools: [], problems: [], hidden: [] }),
  async *poolMap() {},
  address: async (address) => ({ address, use: "." }),
  draft: async () => DRAFT,
  applyDraft: async () => ({ applied: [] }),
  close: async () => {},
};

async function start(more: Partial<HostConsole> = {}): Promise<void> {
  begin(more);
  await pollUntil(() => out.length > 0, "the address");
}

function begin(more: Partial<HostConsole>): void {
  [out, errors, stop, parent, opened, failure] = [[], [], new AbortController(), 7, 0, undefined];
  const context: HostConsoleContext = {
    now: () => new Date(),
    clock: { now: SYSTEM_CLOCK.now, wait: (_milliseconds, signal) => SYSTEM_CLOCK.wait(5, signal) },
    signal: stop.signal,
    startedBy: () => parent,
    version: "1",
    stdout: (text) => void out.push(text),
    stderr: (text) => void errors.push(text),
  };
  ended = serveHost(context, {
    ...{ port: 0, writable: false, asJson: false, page: { html: "<!doctype html>", assets: new Map() } },
    openSource: async () => {
      opened += 1;
      if (failure !== undefined) throw failure;
      return source;
    },
    ...more,
  });
  ended.catch(() => {});
}

beforeEach(() => start());
afterEach(async () => {
  stop.abort();
  await ended;
});

function lastAddress(): URL {
  return new URL(out.at(-1)?.trim() ?? "");
}

async function logIn(token = lastAddress().hash.slice("#token=".length)) {
  const response = await fetch(new URL("/api/login", lastAddress()), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  const answer: unknown = await response.json();
  const csrfToken = isObject(answer) ? answer["csrfToken"] : undefined;
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const headers = { cookie, "x-csrf-token": `${csrfToken}`, "content-type": "application/json" };
  return { status: response.status, answer, headers };
}

describe("serveHost()", () => {
  test("listens on loopback alone", () => {
    const address = lastAddress();
    expect([address.protocol, address.hostname]).toEqual(["http:", "127.0.0.1"]);
    const port = Number(address.port).toString(16).toUpperCase().padStart(4, "0");
    const listening = ["/proc/net/tcp", "/proc/net/tcp6"]
      .flatMap((file) => readFileSync(file, "utf8").split("\n"))
      .map((line) => line.trim().split(/\s+/))
      .filter(([, local, , state]) => state === "0A" && local?.endsWith(`:${port}`) === true);
    expect(listening.map(([, local]) => local)).toEqual([`0100007F:${port}`]);
  });

  test("lets who has the address in, once", async () => {
    const token = lastAddress().hash.slice("#token=".length);
    expect(token).toMatch(/^[\w-]{43}$/);
    const first = await logIn(token);
    expect([first.status, first.answer]).toMatchObject([200, { mode: "host", user: "root", writable: false }]);
    const second = await logIn(token);

    expect([second.status, opened]).toEqual([401, 1]);
    expect(second.answer).toEqual({
      message: "Cannot log in: the address was opened before, or is another one",
      remedy: "Open the address that was printed last on the terminal of the console",
      mode: "host",
    });
    expect(errors.join("")).not.toContain(token);
    expect(out).toHaveLength(1);
  });

  test("lets nobody in with another token", async () => {
    for (const token of ["", "x", "x".repeat(43)]) expect((await logIn(token)).status).toBe(401);
    expect(opened).toBe(0);
    expect((await logIn()).status).toBe(200);
  });

  test("prints another address when the session has ended, or could not begin", async () => {
    const { headers } = await logIn();
    await fetch(new URL("/api/logout", lastAddress()), { method: "POST", headers });
    expect(out).toHaveLength(2);
    failure = new PluginError("datastore-unavailable", "Cannot open the datastore: no answer");
    expect((await logIn()).status).toBe(503);
    expect(out).toHaveLength(3);
    failure = undefined;
    expect((await logIn()).status).toBe(200);
    expect(new Set(out).size).toBe(3);
  });

  test("answers to names of loopback, forwarded or not, and to no other", async () => {
    const statusFor = async (host: string) => (await fetch(new URL("/", lastAddress()), { headers: { host } })).status;
    for (const host of ["localhost:1", "127.0.0.1:2"]) expect([host, await statusFor(host)]).toEqual([host, 200]);
    for (const host of ["evil.example", "127.0.0.2", "localhost.evil.example"])
      expect([host, await statusFor(host)]).toEqual([host, 421]);
  });

  test("applies a draft only if it may write", async () => {
    const apply = async () => {
      const { headers } = await logIn();
      const body = JSON.stringify(DRAFT);
      return (await fetch(new URL("/api/flows/1/draft", lastAddress()), { method: "POST", headers, body })).status;
    };
    expect(await apply()).toBe(403);
    stop.abort();
    await ended;
    await start({ writable: true });
    expect(await apply()).toBe(200);
  });

  test("has a cookie of its own port", async () => {
    const { headers } = await logIn();
    expect(headers.cookie).toStartWith(`${identity.console}-${lastAddress().port}=`);
  });

  test("ends when it is stopped, with what goes on", async () => {
    const { headers } = await logIn();
    const stream = await fetch(new URL("/api/health", lastAddress()), { headers });
    const text = stream.text().catch(() => "");
    stop.abort();
    expect(await ended).toBe(0);
    await text;
    await expect(fetch(lastAddress())).rejects.toThrow();
    expect(out).toHaveLength(1);
  });

  test("ends when the process that has started it ends", async () => {
    parent = 1;
    expect(await ended).toBe(0);
  });

  test("prints JSON if it is asked to", async () => {
    stop.abort();
    await ended;
    await start({ asJson: true });
    expect(JSON.parse(out.join(""))).toEqual({ address: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/#token=/) });
    expect(errors).toEqual([]);
  });

  test("says so if the port is in use", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const other = createServer().listen({ host: "127.0.0.1", port: 0 }, () => resolve());
    await promise;
    const place = other.address();
    const port = typeof place === "object" && place !== null ? place.port : 0;
    const stopped = ended;
    stop.abort();
    await stopped;
    const refused = await rejectionOf(async () => {
      begin({ port });
      await ended;
    });
    other.close();
    ended = Promise.resolve(0);
    expect(refused).toMatchObject({ kind: "io-failure", message: expect.stringContaining("the port is in use") });
  });
});

describe("console", () => {
  test.each(["0", "http", "65536", "-1"])("refuses the port %s", async (port) => {
    expect((await runInside(["console", `--port=${port}`])).code).toBe(2);
  });
});
