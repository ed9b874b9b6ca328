import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { type Certificate, makeRoot, makeSigned } from "../../../test/support/certificates.ts";
import { temporaryDirectory } from "../../../test/support/temporary-directory.ts";
import type { FlowAnswer } from "../../flows/flow-answer.ts";
import { apiVersionOf, FLOWS_API } from "../../identity.ts";
import type { KubeClient } from "../../kube/api.ts";
import { AccessReviews } from "./access-reviews.ts";
import type { Reader } from "./cluster-flows.ts";
import { FlowApiServer } from "./flow-api-server.ts";

const directory = temporaryDirectory("flow-api");
const may = { read: true, nodes: true, fails: false };
let server: FlowApiServer;
let client: Certificate;
let root: Certificate;
let elapsed = 0;

/** As the API server answers reviews. */
const api: Pick<KubeClient, "request"> = {
  async request({ body = "" }) {
    const { resource } = JSON.parse(body).spec.resourceAttributes;
    if (may.fails && resource === "pods") throw new Error("the API server does not answer");
    const allowed = resource === "pods" || (resource === "nodes" ? may.nodes : may.read);
    return { status: 201, text: JSON.stringify({ status: { allowed } }) };
  },
};

/** Erases the line of a terminal, breaks it, and turns its direction. */
const HOSTILE = "\u009b2K\u2028\u202e";

/** Goes on until nobody reads. */
async function* endless(_question: unknown, _reader: Reader, signal: AbortSignal): AsyncIterable<FlowAnswer> {
  for (let index = 0; !signal.aborted; index++) {
    yield { problem: { message: `${index}${HOSTILE}` } };
    await Bun.sleep(10);
  }
}

beforeAll(async () => {
  root = makeRoot(directory.path, "root");
  client = makeSigned(directory.path, "client", root, { subject: "/CN=front-proxy-client" });
  // Each review is a new one.
  const reviews = new AccessReviews(api, () => (elapsed += 60_000));
  server = new FlowApiServer({
    flows: { answer: async (...given) => endless(...given) },
    reviews,
    log: () => {},
    reviewMilliseconds: 50,
  });
  const [certificate, key] = [readFileSync(client.cert, "utf8"), readFileSync(client.key, "utf8")];
  await server.listen(
    "127.0.0.1",
    0,
    { certificate, key },
    {
      authorities: readFileSync(root.cert, "utf8"),
      allowedNames: ["front-proxy-client"],
      userHeaders: ["x-remote-user"],
      groupHeaders: ["x-remote-group"],
      extraPrefixes: [],
    },
  );
});
afterAll(() => {
  server.close();
  directory.remove();
});

/** Resolves when the answer has ended. */
function follow(parameters: string, ifLine: (bytes: Buffer) => void, user = "anna"): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const asked = httpsRequest(
    {
      ...{ host: "127.0.0.1", port: server.port, path: `/apis/${apiVersionOf(FLOWS_API)}/flows?${parameters}` },
      ...{ ca: readFileSync(root.cert), cert: readFileSync(client.cert), key: readFileSync(client.key), agent: false },
      headers: { "X-Remote-User": user },
    },
    (response) => {
      response.on("data", ifLine);
      response.on("end", () => resolve(response.statusCode ?? 0));
      response.on("error", reject);
    },
  );
  asked.on("error", reject);
  asked.end();
  return promise;
}

test.each([
  ["may not read flows any more", "read"],
  ["does not see everything any more", "nodes"],
] as const)("an answer that goes on ends when the reader %s", async (_title, right) => {
  let lines = 0;
  const ended = follow("watch=true", () => {
    lines += 1;
    if (lines === 20) may[right] = false;
  });

  expect(await ended).toBe(200);
  expect(lines).toBeGreaterThanOrEqual(20);
  may[right] = true;
});

test("sends no control character, whatever a node says", async () => {
  let text = "";
  const answer = follow("watch=true", (bytes) => {
    text += bytes;
    if (text.split("\n").length > 3) may.read = false;
  });
  expect(await answer).toBe(200);
  may.read = true;

  expect(JSON.parse(text.split("\n")[0] ?? "")).toEqual({ problem: { message: `0${HOSTILE}` } });
  expect(text.replaceAll("\n", "")).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}]/u);
});

test("refuses a reader without the right", async () => {
  may.read = false;
  expect(await follow("", () => {})).toBe(403);
  may.read = true;
});

/** Ends the answers that go on. */
async function endAll(answers: readonly Promise<number>[]): Promise<void> {
  may.read = false;
  await Promise.all(answers);
  may.read = true;
}

test("answers again after any number of reviews that failed", async () => {
  may.fails = true;
  for (let attempt = 0; attempt < 70; attempt++) expect(await follow("watch=true", () => {})).toBe(503);
  may.fails = false;
  const first = Promise.withResolvers<void>();
  const answer = follow("watch=true", () => first.resolve());
  await Promise.race([first.promise, answer]);
  await endAll([answer]);

  expect(await answer).toBe(200);
});

test("leaves places for others, however many answers one user reads", async () => {
  const open: Promise<number>[] = [];
  for (let index = 0; index < 16; index++) {
    const first = Promise.withResolvers<void>();
    open.push(follow("watch=true", () => first.resolve()));
    await first.promise;
  }
  // With a limit for all together only, this one goes on.
  const oneMore = await Promise.race([follow("watch=true", () => {}), Bun.sleep(2_000)]);
  const first = Promise.withResolvers<void>();
  const other = follow("watch=true", () => first.resolve(), "bob");
  await first.promise;
  await endAll([...open, other]);

  expect(oneMore).toBe(429);
  expect(await other).toBe(200);
});
