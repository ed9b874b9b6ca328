import { describe, expect, test } from "bun:test";
import { rejectionOf } from "../../test/support/thrown-by.ts";
import { NODE_TOKENS } from "../release/admission/node-policies.ts";
import { operatorRules } from "../release/roles/operator-rules.ts";
import { ServerRelease } from "./server-release.ts";

const MINUTE = 60_000;

/** An API server that gives one response after the other; the last one stays. */
function release(...responses: readonly (string | number)[]) {
  const left = [...responses];
  const log: string[] = [];
  let time = 1;
  const server = new ServerRelease({
    client: {
      request: async () => {
        const [response = ""] = left.length > 1 ? left.splice(0, 1) : left;
        return typeof response === "number"
          ? { status: response, text: '{"message":"no"}' }
          : { status: 200, text: JSON.stringify({ gitVersion: response }) };
      },
    },
    signal: new AbortController().signal,
    wait: async () => {},
    random: () => 0.5,
    elapsed: () => time,
    log: (message) => void log.push(message),
  });
  const later = () => {
    time += MINUTE;
    return server.refresh();
  };
  return { server, log, later };
}

describe("ServerRelease", () => {
  test("asks again until there is a response", async () => {
    const { server, log } = release(503, 500, "v1.35.0");

    expect(await server.first()).toBe("v1.35.0");
    expect(log).toHaveLength(2);
  });

  test("counts a server whose release may not be read as one that serves everything, and says so once", async () => {
    const { server, log, later } = release(403);

    expect(await server.first()).toBe("unknown");
    await later();
    expect(log).toEqual([expect.stringContaining("counts as one that serves everything")]);
  });

  test("may be read by the operator's own role", () => {
    expect(operatorRules()).toContainEqual({ nonResourceURLs: ["/version"], verbs: ["get"] });
  });

  test("says what is left out", async () => {
    const { server, log } = release("v1.30.14");
    await server.first();

    expect(log).toEqual([expect.stringContaining(NODE_TOKENS)]);
  });

  test("follows the server within a minute", async () => {
    const { server, later } = release("v1.30.14", "v1.31.0");
    await server.first();
    await server.refresh();
    expect(server.version).toBe("v1.30.14");
    await later();
    expect(server.version).toBe("v1.31.0");
  });

  test("ends the operator if admission policies are served now, or no longer", async () => {
    for (const versions of [
      ["v1.29.1", "v1.30.1"],
      ["v1.30.1", "v1.29.1"],
    ]) {
      const { server, later } = release(...versions);
      await server.first();
      expect((await rejectionOf(later)).message).toContain("must start again");
    }
  });

  test("keeps the release if it cannot be read again", async () => {
    const { server, later } = release("v1.29.1", 500);
    await server.first();
    await later();
    expect(server.version).toBe("v1.29.1");
  });
});
