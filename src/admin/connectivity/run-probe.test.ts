import { afterAll, describe, expect, test } from "bun:test";
import { runInside } from "../../../test/support/admin-context.ts";
import { openAnsweringSocket } from "../../linux/unchecked-datagrams.ts";
import { EXIT_USAGE } from "../main/command.ts";
import { Interruption, STOP_EXIT_CODES } from "../main/interruption.ts";
import { startEchoServer } from "./echo-server.ts";
import { lastRound, type Probe } from "./probe.ts";
import { runProbe } from "./run-probe.ts";

const server = startEchoServer(0, "test");
const mute = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
afterAll(async () => {
  await server.stop();
  mute.stop(true);
});

const means = {
  timeoutMilliseconds: 300,
  resolverConfig: "nameserver 127.0.0.1\nsearch default.svc.example.test svc.example.test example.test\n",
};

/** Responds to datagrams at this port. */
function openAnswered(port: number) {
  const socket = openAnsweringSocket({ family: 4, value: 0x7f000001n }, port);
  const timer = setInterval(() => socket.answer(), 5);
  return {
    port,
    [Symbol.dispose]() {
      clearInterval(timer);
      socket.close();
    },
  };
}

describe("runProbe()", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::1"],
  ])("an echo server at %s tells which address it sees", async (host, seenAs) => {
    expect(await runProbe({ kind: "echo", host, port: server.port }, means)).toEqual({ kind: "ok", seenAs });
  });

  test("a server that accepts and does not reply is told apart from one that refuses", async () => {
    const host = "127.0.0.1";
    expect(await runProbe({ kind: "echo", host, port: mute.port }, means)).toMatchObject({ kind: "incomplete" });
    expect(await runProbe({ kind: "connect", host, port: mute.port }, means)).toEqual({ kind: "ok" });
    expect(await runProbe({ kind: "connect", host, port: 1 }, means)).toMatchObject({ kind: "refused" });
  });

  test("if only TCP is lost, datagrams of all sizes pass; if everything is, none does", async () => {
    const lost = await runProbe({ kind: "echo", host: "127.0.0.1", port: mute.port }, means);
    expect(lost).toMatchObject({ kind: "incomplete", datagrams: { largest: 0 } });

    using answered = openAnswered(mute.port);
    const half = await runProbe({ kind: "echo", host: "127.0.0.1", port: answered.port }, means);
    expect(half).toMatchObject({ kind: "incomplete", datagrams: { largest: 65_535, mtu: 65_535 } });
  });

  test("a name is completed with the domain of the cluster", async () => {
    expect(await runProbe({ kind: "resolve", host: "kubernetes.default.svc" }, means)).toMatchObject({
      kind: "unresolved",
      message: expect.stringContaining('"kubernetes.default.svc.example.test"'),
    });
    expect(await runProbe({ kind: "resolve", host: "x" }, { ...means, resolverConfig: "" })).toMatchObject({
      message: "the pod's resolv.conf has no name server",
    });
  });
});

describe("connectivity probe", () => {
  test("prints a round of results again and again until it is stopped, and serves meanwhile", async () => {
    const user = new AbortController();
    let output = "";
    const probes: readonly Probe[] = [{ kind: "echo", host: "127.0.0.1", port: server.port }];
    const { code } = await runInside(["connectivity", "probe", "--listen=0", JSON.stringify(probes)], {
      signal: user.signal,
      onStdout(text) {
        output += text;
        if (output.split("\n").length > 2) user.abort(new Interruption("SIGTERM"));
      },
    });

    expect(code).toBe(STOP_EXIT_CODES.SIGTERM);
    const result = { kind: "ok", seenAs: "127.0.0.1" } as const;
    expect(lastRound(output)).toEqual({ round: 2, results: { [`echo 127.0.0.1 ${server.port}`]: result } });
  });

  test.each(["probe", "probe {}", "probe [] []", "serve", "serve x"])("refuses %p", async (words) => {
    expect((await runInside(["connectivity", ...words.split(" ")])).code).toBe(EXIT_USAGE);
  });
});
