/** The socket of a node at which root asks for flows, with real HTTP. */
import { afterEach, beforeEach, describe, expect } from "bun:test";
import { chmodSync, existsSync, lstatSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { FlowHistory } from "../../src/agent/flows/history/flow-history.ts";
import { FlowServer } from "../../src/agent/flows/history/serve-flows.ts";
import type { FlowAnswer } from "../../src/flows/flow-answer.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { flowStream, seededRandom } from "../support/random-flows.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";

const test = testNeeding(root, program("setpriv"));

let directory: TemporaryDirectory;
let history: FlowHistory;
let server: FlowServer;
let path = "";
beforeEach(() => {
  directory = temporaryDirectory("flow-socket");
  path = join(directory.path, "flows.sock");
  history = new FlowHistory({
    ...{
      directory: join(directory.path, "flows"),
      node: "one",
      now: Date.now,
      elapsed: () => performance.now(),
      warn: () => {},
    },
    settings: { limits: { bytes: 50_000_000, milliseconds: 86_400_000 } },
  });
  server = new FlowServer({ path, node: "one", source: history });
});
afterEach(async () => {
  await server.close();
  await history.close();
  directory.remove();
});

function get(target: string, signal?: AbortSignal): Promise<Response> {
  return fetch(`http://node${target}`, { unix: path, ...(signal === undefined ? {} : { signal }) });
}

function put(count: number) {
  const stream = flowStream("one", seededRandom(1));
  const records = Array.from({ length: count }, () => stream.next(Date.now()));
  history.put(
    records.map((record) => ({ record })),
    [],
  );
  return records;
}

async function linesOf(response: Response): Promise<readonly FlowAnswer[]> {
  const text = await response.text();
  return text
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line));
}

describe("the socket of flows", () => {
  test("answers with lines of JSON, the losses last", async () => {
    const denied = put(500).filter(({ verdict }) => verdict === "denied");
    const response = await get("/flows?verdict=denied&last=5");
    const lines = await linesOf(response);

    expect(response.status).toBe(200);
    expect(lines.slice(0, -1)).toEqual(denied.slice(-5).map((flow) => ({ flow })));
    expect(lines.at(-1)).toHaveProperty("losses.notStored", 0);
    expect((await linesOf(await get("/rollups?verdict=denied")))[0]).toHaveProperty("rollup.verdict", "denied");
  });

  test("refuses what it cannot answer, with the field, its value and what to use", async () => {
    const refused = [
      ["/flows?port=x", 400, '"x" is not a number; use'],
      ["/flows?colour=red", 400, "no such field; use one of"],
      ["/explanation", 400, '"id"'],
      ["/other", 404, "no such path; use"],
    ] as const;
    for (const [target, status, message] of refused) {
      const response = await get(target);
      expect([target, response.status]).toEqual([target, status]);
      expect(((await response.json()) as { message: string }).message).toContain(message);
    }
  });

  test("streams what comes until the client leaves", async () => {
    const stopping = new AbortController();
    const response = await get("/flows?follow=true&last=0&verdict=denied", stopping.signal);
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    let text = "";
    const readUntil = async (word: string) => {
      while (!text.includes(word)) text += new TextDecoder().decode((await reader.read()).value);
    };
    await readUntil("losses");
    const denied = put(300).filter(({ verdict }) => verdict === "denied");
    await readUntil(`"${denied.at(-1)?.id}"`);
    stopping.abort();
  });

  test("refuses more answers at once than its limit, and takes others when readers have left", async () => {
    const stopping = new AbortController();
    for (let count = 0; count < 32; count++)
      expect((await get("/flows?follow=true&last=0", stopping.signal)).status).toBe(200);
    expect((await get("/flows?last=1")).status).toBe(503);
    stopping.abort();
    await pollUntil(async () => (await get("/flows?last=1")).status === 200, "a place");
  });

  test("another user is refused", async () => {
    chmodSync(directory.path, 0o755);
    expect(lstatSync(path).mode & 0o777).toBe(0o600);
    const connect = `import socket; socket.socket(socket.AF_UNIX).connect(${JSON.stringify(path)})`;
    const run = (...command: readonly string[]) => Bun.spawnSync([...command, "python3", "-c", connect]);
    expect(run().exitCode).toBe(0);
    const other = run("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups");
    expect(other.exitCode).not.toBe(0);
    expect(other.stderr.toString()).toContain("Permission denied");
  });

  test("takes the place of a former socket, leaves that of a later one, and replaces no other file", async () => {
    const later = new FlowServer({ path, node: "one", source: history });
    await server.close();
    expect((await get("/flows?last=1")).status).toBe(200);
    await later.close();
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, "");
    expect(() => new FlowServer({ path, node: "one", source: history })).toThrow("not a socket");
  });
});
