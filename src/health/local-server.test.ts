import { afterEach, describe, expect, test } from "bun:test";
import { freePorts } from "../../test/support/etcd.ts";
import { LocalServer } from "./local-server.ts";

const problems: string[] = [];
const server = new LocalServer(
  (path) => (path === "/page" ? { status: 200, text: "here" } : undefined),
  (message) => problems.push(message),
);
afterEach(() => server.close());

const read = (host: string, port: number, path = "/page") =>
  fetch(`http://${host}:${port}${path}`).then(
    (response) => response.status,
    () => "refused",
  );

describe("the server of health and metrics", () => {
  test("listens at all addresses of both families, or where it is told", async () => {
    const [port = 0] = await freePorts(1);
    server.listen({ host: "", port });
    expect([await read("127.0.0.1", port), await read("[::1]", port)]).toEqual([200, 200]);
    expect(await read("127.0.0.1", port, "/other")).toBe(404);

    server.listen({ host: "localhost", port });
    expect([await read("127.0.0.1", port), await read("[::1]", port)]).toEqual([200, "refused"]);
    server.listen(undefined);
    expect(await read("127.0.0.1", port)).toBe("refused");
  });

  test("reports an address in use, and tries it again at the next call", async () => {
    const [port = 0] = await freePorts(1);
    const other = Bun.serve({ hostname: "0.0.0.0", port, fetch: () => new Response("other") });
    server.listen({ host: "", port });
    expect(problems.join()).toContain(`Cannot listen at :${port}`);
    await other.stop(true);
    server.listen({ host: "", port });

    expect(await read("127.0.0.1", port)).toBe(200);
  });

  test("does not share an exclusive address", async () => {
    const [port = 0] = await freePorts(1);
    const failures: string[] = [];
    const second = new LocalServer(
      () => undefined,
      (message) => failures.push(message),
    );
    server.listen({ host: "", port, isExclusive: true });
    second.listen({ host: "", port, isExclusive: true });
    second.close();

    expect(failures.join()).toContain(`Cannot listen at :${port}`);
    expect(await read("127.0.0.1", port)).toBe(200);
  });
});
