/** An etcd that accepts connections and never responds, and one that accepts none. */
import { describe, expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { failureOf } from "../datastore-contract/subject.ts";
import { openEtcd } from "./etcd.ts";

const LIMITS = {
  firstAttemptMilliseconds: 50,
  longestAttemptMilliseconds: 100,
  noticeMilliseconds: 100,
  wholeMilliseconds: 500,
  briefMilliseconds: 200,
};

describe("an etcd that does not respond", () => {
  test.each(["read", "commit"] as const)(
    "is reported once, with the time left, before a %s fails",
    async (operation) => {
      const { url, close } = await startSilentServer();
      const { events } = await attempt(url, operation);
      close();

      expect(events).toEqual([`${url} does not respond, 450 ms left`, "datastore-unavailable"]);
    },
  );

  test("is not reported if it refuses connections, which fails soon", async () => {
    const { url, close } = await startSilentServer();
    close();

    expect((await attempt(url, "read")).events).toEqual(["datastore-unavailable"]);
  });
});

async function startSilentServer() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets = new Set<{ destroy(): void }>();
  server.on("connection", (socket) => sockets.add(socket));
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close };
}

async function attempt(url: string, operation: "read" | "commit") {
  const events: string[] = [];
  const onSilence = (silent: string, left: number) => void events.push(`${silent} does not respond, ${left} ms left`);
  const store = await openEtcd({ source: { kind: "endpoints", endpoints: [url] } }, { limits: LIMITS, onSilence });
  const work = {
    read: () => store.read([{ kind: "key", key: "/a" }]),
    commit: () => store.commit([{ kind: "create", key: "/a", value: "" }]),
  };
  const failure = await failureOf(work[operation]());
  events.push(failure instanceof Error && "kind" in failure ? String(failure.kind) : "no failure");
  await store.close();
  return { events };
}
