import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { lstatSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TemporaryDirectory, temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import { type AccessMeans, keepPluginAccess, keepToken, nextRenewal, tokenInFile } from "./keep-plugin-access.ts";
import { boundAccount, pluginKubeconfig, readPluginKubeconfig } from "./kubeconfig.ts";
import { secretEntry } from "./layout.ts";

const HOUR = 3_600_000;
const SERVER = "https://10.96.0.1:443";

let directory: TemporaryDirectory;
const at = (name: string) => join(directory.path, name);
const installed = () => readPluginKubeconfig(readFileSync(at("kubeconfig"), "utf8"));
beforeEach(() => {
  directory = temporaryDirectory("access");
});
afterEach(() => directory.remove());

interface Run {
  readonly requests: readonly number[];
  readonly reported: readonly string[];
}

/** Runs until so many hours have passed; `each` is called at every wait. */
async function runFor(hours: number, more: Partial<AccessMeans> = {}, each = (_hours: number) => {}): Promise<Run> {
  const stop = new AbortController();
  let now = 0;
  const [requests, reported]: [number[], string[]] = [[], []];
  const means: AccessMeans = {
    path: at("kubeconfig"),
    server: SERVER,
    isInstalled: () => true,
    readAuthority: () => "CA 1",
    copies: () => [],
    now: () => now,
    random: () => 0.5,
    log: () => {},
    problems: { report: (message) => void reported.push(message), forget: () => {} },
    async wait(milliseconds) {
      now += milliseconds;
      each(now / HOUR);
      if (now >= hours * HOUR) stop.abort();
    },
    requestToken: async () => ({ token: "none", expires: now }),
    readNodeUid: async () => undefined,
    ...more,
  };
  const requestToken: AccessMeans["requestToken"] = async (signal) => {
    requests.push(now / HOUR);
    return more.requestToken?.(signal) ?? { token: tokenUntil(now + 24 * HOUR), expires: now + 24 * HOUR };
  };
  await keepPluginAccess({ ...means, requestToken }, stop.signal);
  return { requests, reported };
}

function tokenUntil(expires: number, nodeUid?: string): string {
  const bound = nodeUid === undefined ? {} : { "kubernetes.io": { node: { name: "node-1", uid: nodeUid } } };
  const claims = Buffer.from(JSON.stringify({ exp: expires / 1_000, ...bound })).toString("base64url");
  return `header.${claims}.signature`;
}

function write(token = tokenUntil(24 * HOUR), authority = "CA 1"): void {
  writeFileSync(at("kubeconfig"), pluginKubeconfig({ server: SERVER, authority, token }));
}

describe("nextRenewal()", () => {
  test("is after a quarter to a half of the time that is left", () => {
    expect(nextRenewal(1_000, 1_000 + 24 * HOUR, 0)).toBe(1_000 + 6 * HOUR);
    expect(nextRenewal(1_000, 1_000 + 24 * HOUR, 1)).toBe(1_000 + 12 * HOUR);
    expect(nextRenewal(1_000, 500, 0.5)).toBe(1_000);
  });
});

describe("keepPluginAccess()", () => {
  test("requests a new token within a minute if the Node was deleted and created again", async () => {
    let uid = "first";
    const requestToken = async () => ({ token: tokenUntil(100 * HOUR, uid), expires: 100 * HOUR });
    const readNodeUid = async () => (uid === "unreadable" ? Promise.reject(new Error("no answer")) : uid);
    const { requests } = await runFor(3, { requestToken, readNodeUid }, (hours) => {
      uid = hours < 1 ? "first" : hours < 2 ? "unreadable" : "second";
    });

    expect(requests).toHaveLength(2);
    expect(requests[1]).toBeGreaterThanOrEqual(2);
    expect(requests[1]).toBeLessThanOrEqual(2 + 2 / 60);
  });

  test("renews the token again and again, long before it ends", async () => {
    write();
    const { requests } = await runFor(30);

    expect(requests.map((hours) => Math.round(hours))).toEqual([9, 18, 27]);
    expect(lstatSync(at("kubeconfig")).mode & 0o777).toBe(0o600);
  });

  test("goes by the time that the server grants", async () => {
    write(tokenUntil(0));
    let now = 0;
    const requestToken = async () => ({ token: tokenUntil(now + HOUR), expires: now + HOUR });
    const { requests } = await runFor(2, { requestToken }, (hours) => {
      now = hours * HOUR;
    });

    expect(requests).toHaveLength(6);
  });

  test("renews at once if the file is missing or damaged, or the token has ended", async () => {
    const broken = ["", "{", tokenUntil(-HOUR)];
    for (const text of broken) {
      rmSync(at("kubeconfig"), { force: true });
      if (text !== "") writeFileSync(at("kubeconfig"), text);
      expect((await runFor(1)).requests).toEqual([0]);
      expect(installed()?.token).toBe(tokenUntil(24 * HOUR));
    }
  });

  test("follows the CA within a minute", async () => {
    write();
    let authority = "CA 1";
    const { requests } = await runFor(1, { readAuthority: () => authority }, (hours) => {
      if (hours > 0.5) authority = "CA 1 and CA 2";
    });

    expect(requests).toHaveLength(1);
    expect(installed()?.authority).toBe("CA 1 and CA 2");
  });

  test("leaves the file as it is while the API refuses, and tries again", async () => {
    write(tokenUntil(HOUR));
    const before = readFileSync(at("kubeconfig"), "utf8");
    const requestToken = () => Promise.reject(new Error("the API is not reachable"));
    const { requests, reported } = await runFor(0.5, { requestToken });

    expect(readFileSync(at("kubeconfig"), "utf8")).toBe(before);
    expect(requests.length).toBeGreaterThan(10);
    expect(reported[0]).toBe("Cannot renew the plugin's access: the API is not reachable");
  });

  test("copies changed credentials of etcd", async () => {
    write();
    writeFileSync(at("etcd-key"), "old");
    await runFor(0.1, { copies: () => [secretEntry(at("etcd-key"), "new")] });

    expect(readFileSync(at("etcd-key"), "utf8")).toBe("new");
  });

  test("does nothing if nothing is installed", async () => {
    expect((await runFor(30, { isInstalled: () => false })).requests).toEqual([]);
  });
});

describe("keepToken()", () => {
  test("replaces the token in its file, for root alone, and goes by the end of one that somebody else has put there", async () => {
    const [path, stop] = [at("token"), new AbortController()];
    const renewed: number[] = [];
    let now = 0;
    writeFileSync(path, `${tokenUntil(100 * HOUR)}\n`);
    await keepToken(
      {
        title: "the access",
        ...tokenInFile(path),
        isInstalled: () => true,
        async requestToken() {
          renewed.push(now / HOUR);
          return { token: tokenUntil(now + 100 * HOUR), expires: now + 100 * HOUR };
        },
        readNodeUid: async () => undefined,
        now: () => now,
        random: () => 0,
        log: () => {},
        problems: { report: expect.unreachable, forget: () => {} },
        async wait(milliseconds) {
          now += milliseconds;
          if (now === HOUR) writeFileSync(path, tokenUntil(5 * HOUR));
          if (now > 10 * HOUR) stop.abort();
        },
      },
      stop.signal,
    );

    expect(renewed).toEqual([2]);
    expect(readFileSync(path, "utf8")).toBe(tokenUntil(102 * HOUR));
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
  });
});

describe("boundAccount()", () => {
  const tokenWith = (claims: object) =>
    `header.${Buffer.from(JSON.stringify({ "kubernetes.io": claims })).toString("base64url")}.signature`;
  const claims = { namespace: "kube-system", serviceaccount: { name: "agent" }, node: { name: "node-1", uid: "1" } };

  test("says the account and the Node of a token", () => {
    expect(boundAccount(tokenWith(claims))).toEqual({ namespace: "kube-system", name: "agent", node: "node-1" });
  });

  test.each([["nonsense"], [tokenWith({ ...claims, node: undefined })], [tokenWith({})]])(
    "knows none of a token without a Node: %s",
    (token) => {
      expect(boundAccount(token)).toBeUndefined();
    },
  );
});
