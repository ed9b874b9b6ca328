/** Our gRPC server with a client of grpc-go: etcdctl, whose requests are answered without a datastore. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { delimited, Fields, message, varint } from "../../src/grpc/protobuf.ts";
import { type GrpcServer, serveGrpc } from "../../src/grpc/server.ts";
import { GrpcError } from "../../src/grpc/status.ts";

const directory = mkdtempSync("/tmp/grpc-go-");
const path = join(directory, "etcd.sock");
const large = "v".repeat(100_000);
let server: GrpcServer;
let endpoint = "";
// This version of grpc-go sends the path of a unix socket as the authority, which HTTP/2 does not allow.
const forwarder = createServer((client) => {
  const socket = connect(path);
  client.pipe(socket).pipe(client);
  client.on("error", () => socket.destroy());
  socket.on("error", () => client.destroy());
});

beforeAll(async () => {
  server = await serveGrpc(
    { path, mode: 0o600 },
    {
      "/etcdserverpb.KV/Range": (request) => {
        const entry = message(delimited(1, new Fields(request).text(1)), delimited(5, large));
        return message(delimited(2, entry), varint(4, 1n));
      },
      "/etcdserverpb.KV/Put": () => {
        throw new GrpcError("failed-precondition", "größe: 100%");
      },
    },
  );
  await new Promise<void>((resolve) => forwarder.listen(0, "127.0.0.1", resolve));
  const address = forwarder.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  endpoint = `http://127.0.0.1:${address.port}`;
});
afterAll(async () => {
  forwarder.close();
  await server.close();
  rmSync(directory, { recursive: true, force: true });
});

async function etcdctl(...args: readonly string[]) {
  const env = { ...process.env, ETCDCTL_API: "3" };
  const child = Bun.spawn(["etcdctl", `--endpoints=${endpoint}`, ...args], { env, stdout: "pipe", stderr: "pipe" });
  const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  return { output, errors };
}

test("a client of grpc-go gets responses, statuses and messages", async () => {
  const key = "k".repeat(100_000);

  expect((await etcdctl("get", key)).output).toBe(`${key}\n${large}\n`);
  expect((await etcdctl("put", "key", "value")).errors).toContain("code = FailedPrecondition desc = größe: 100%");
  expect((await etcdctl("del", "key")).errors).toContain(
    "code = Unimplemented desc = unknown method /etcdserverpb.KV/DeleteRange",
  );
});
