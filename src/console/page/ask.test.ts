import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import * as v from "valibot";
import type { Session } from "../api/session.ts";
import { ask, askLines, Refusal } from "./ask.ts";
import { keepFollowing } from "./keep-following.ts";
import { loginMode, loginNotice, session } from "./session-state.ts";

const SESSION: Session = {
  ...{ product: "P", version: "v1", mode: "cluster", user: "anna", writable: true, csrfToken: "csrf" },
  expires: 1,
  idleMilliseconds: 1,
};
const anything = v.looseObject({});
const realFetch = globalThis.fetch;
let answers: Response[] = [];
let requests: Request[] = [];

beforeEach(() => {
  [answers, requests] = [[], []];
  const fake = async (path: string, init: RequestInit) => {
    requests.push(new Request(`http://console${path}`, init));
    const answer = answers.shift();
    if (answer === undefined) throw new TypeError("Failed to fetch");
    return answer;
  };
  globalThis.fetch = Object.assign(fake as unknown as typeof fetch, { preconnect: realFetch.preconnect });
  session.value = SESSION;
  loginNotice.value = undefined;
});
afterEach(() => {
  globalThis.fetch = realFetch;
  session.value = undefined;
  loginNotice.value = undefined;
  loginMode.value = "cluster";
});

const refused = (status: number, more: object = {}) =>
  Response.json({ message: "no", remedy: "do this", ...more }, { status });

describe("ask()", () => {
  test("repeats the CSRF token, also to read, and says if nobody asked", async () => {
    answers = [Response.json({}), Response.json({})];
    await ask("/api/pools", anything);
    await ask("/api/pools", anything, { isUnattended: true });

    expect(requests.map(({ headers }) => [headers.get("x-csrf-token"), headers.get("x-unattended")])).toEqual([
      ["csrf", null],
      ["csrf", "true"],
    ]);
  });

  test("refuses in the words of the server", async () => {
    answers = [refused(403)];

    await expect(ask("/api/pools", anything)).rejects.toMatchObject({ status: 403, message: "no", remedy: "do this" });
    expect(session.value).toBe(SESSION);
  });

  test("an ended session asks for a login, and says of which kind", async () => {
    answers = [refused(401, { mode: "host" })];

    await expect(ask("/api/pools", anything)).rejects.toBeInstanceOf(Refusal);
    expect(session.value).toBeUndefined();
    expect(loginNotice.value).toEqual({ message: "no", remedy: "do this", isExpiry: true });
    expect(loginMode.value).toBe("host");
  });

  test("a refused login ends nothing", async () => {
    answers = [refused(401)];

    await expect(ask("/api/login", anything, { body: { token: "x" } })).rejects.toBeInstanceOf(Refusal);
    expect(session.value).toBe(SESSION);
  });

  test("says that nobody answers, and that an answer is not understood", async () => {
    await expect(ask("/api/pools", anything)).rejects.toThrow("The console does not answer");
    answers = [Response.json({ at: "yesterday" })];
    await expect(ask("/api/pools", v.object({ at: v.number() }))).rejects.toThrow("does not understand");
  });
});

describe("askLines()", () => {
  const lines = async () => {
    const read: object[] = [];
    for await (const line of askLines("/api/flows", () => anything)) read.push(line);
    return read;
  };

  test("has a value for each line, and none for signs of life", async () => {
    answers = [new Response('{"a":1}\n\n{"a":2}\n')];

    expect(await lines()).toEqual([{ a: 1 }, { a: 2 }]);
  });

  test("ends with what ended the answer", async () => {
    answers = [new Response('{"a":1}\n{"refused":{"status":409,"message":"changed"}}\n')];

    await expect(lines()).rejects.toMatchObject({ status: 409, message: "changed" });
  });

  test("ends the session too", async () => {
    answers = [new Response('{"refused":{"status":401,"message":"ended"}}\n')];

    await expect(lines()).rejects.toBeInstanceOf(Refusal);
    expect(session.value).toBeUndefined();
  });
});

describe("keepFollowing()", () => {
  const page = { hidden: false, addEventListener() {}, removeEventListener() {} };
  beforeEach(() => {
    Object.assign(globalThis, { document: page });
  });
  afterEach(() => {
    Reflect.deleteProperty(globalThis, "document");
  });

  async function follow(outcomes: readonly (Refusal | "again" | "complete")[]) {
    const told: string[] = [];
    const end = new AbortController();
    let attempts = 0;
    await keepFollowing(
      {
        read: async ({ isUnattended, live }) => {
          const outcome = outcomes[attempts] ?? "complete";
          attempts += 1;
          told.push(isUnattended ? "asks again" : "asks");
          live();
          if (outcome instanceof Refusal) throw outcome;
          return outcome;
        },
        tell: (following) => told.push(following.kind === "lost" ? following.refusal.message : following.kind),
        forget: () => told.push("forgets"),
      },
      end.signal,
    );
    return told;
  }

  test("asks again after a failure, which nobody asked for", async () => {
    expect(await follow([new Refusal(503, "later"), "complete"])).toEqual([
      "asks",
      "live",
      "later",
      "asks again",
      "live",
      "complete",
    ]);
  });

  test("forgets what is shown if the reader may see other things", async () => {
    expect(await follow([new Refusal(409, "changed"), "complete"])).toEqual([
      "asks",
      "live",
      "forgets",
      "asks again",
      "live",
      "complete",
    ]);
  });

  test("stops when the session has ended", async () => {
    const end = new AbortController();
    const read = async () => {
      session.value = undefined;
      throw new Refusal(401, "ended");
    };

    await keepFollowing({ read, tell: () => {}, forget: () => {} }, end.signal);
    expect(end.signal.aborted).toBe(false);
  });
});
