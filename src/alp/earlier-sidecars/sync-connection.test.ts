/** What programs in place of an earlier sidecar may do; what such a sidecar gets is tested with a real one (test/policy). */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectSocket } from "node:net";
import type { Socket } from "bun";
import { FedPods } from "../../../test/support/fed-pods.ts";
import { policyOf } from "../../../test/support/policy-load.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { MessageReader } from "../../grpc/message-frames.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { encodeFrame, FLAG, FRAME, pingFrame } from "./http2-frames.ts";
import { EARLIER_RELEASE } from "./sync-connection.ts";

let pods: FedPods;
beforeEach(() => {
  pods = new FedPods();
});
afterEach(async () => {
  await pods.close();
  expect(pods.problems).toEqual([]);
});

const PREFACE = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const NOTHING = new Uint8Array(0);
const settings = (window = 65_535) =>
  encodeFrame({
    type: FRAME.settings,
    flags: 0,
    stream: 0,
    payload: new Uint8Array([0, 4, 0, window >> 16, window >> 8, window & 255]),
  });
const widen = (stream: number, increment: number) => {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(increment);
  return encodeFrame({ type: FRAME.windowUpdate, flags: 0, stream, payload });
};
const call = (stream = 1) =>
  encodeFrame({ type: FRAME.headers, flags: FLAG.endHeaders | FLAG.endStream, stream, payload: NOTHING });
const applied = () => pingFrame(new TextEncoder().encode("applied?"), FLAG.ack);

class Client {
  isClosed = false;
  received = Buffer.alloc(0);
  private socket: Socket | undefined;

  static async connect(unix: string): Promise<Client> {
    const client = new Client();
    client.socket = await Bun.connect({
      unix,
      socket: {
        data: (_, bytes) => {
          client.received = Buffer.concat([client.received, bytes]);
        },
        close: () => {
          client.isClosed = true;
        },
      },
    });
    return client;
  }

  send(...pieces: readonly (Uint8Array | string)[]): void {
    this.socket?.write(Buffer.concat(pieces.map((piece) => Buffer.from(piece))));
  }

  pause(): void {
    this.socket?.pause();
  }

  resume(): void {
    this.socket?.resume();
  }

  close(): void {
    this.socket?.terminate();
  }

  /** Types of the frames that have arrived. */
  get frames(): readonly number[] {
    return this.split().map(({ type }) => type);
  }

  /** Of the frames with the response. */
  get data(): Buffer {
    return Buffer.concat(this.split().flatMap(({ type, payload }) => (type === FRAME.data ? [payload] : [])));
  }

  /** Waits until the server has read and done everything that was sent before: it replies first, and sends data then. */
  async settled(): Promise<void> {
    for (const _ of ["read", "done"]) {
      const before = this.pongs;
      this.send(pingFrame(new Uint8Array(8), 0));
      await pollUntil(() => this.pongs > before, "the reply to a ping");
    }
  }

  private get pongs(): number {
    return this.pings(FLAG.ack);
  }

  /** How often the server has asked whether everything is applied. */
  get asked(): number {
    return this.pings(0);
  }

  private pings(wanted: number): number {
    return this.split().filter(({ type, flags }) => type === FRAME.ping && flags === wanted).length;
  }

  private split(): readonly { readonly type: number; readonly flags: number; readonly payload: Buffer }[] {
    const frames = [];
    for (let at = 0; at + 9 <= this.received.length; ) {
      const end = at + 9 + this.received.readUIntBE(at, 3);
      if (end > this.received.length) break;
      const [type = -1, flags = 0] = this.received.subarray(at + 3, at + 5);
      frames.push({ type, flags, payload: this.received.subarray(at + 9, end) });
      at = end;
    }
    return frames;
  }

  hears(type: number): Promise<void> {
    return pollUntil(() => this.frames.includes(type), `a frame ${type}`);
  }

  closed(): Promise<void> {
    return pollUntil(() => this.isClosed, "the end of the connection");
  }
}

const connect = (index = 0) => Client.connect(pods.addEarlierPod(index));

describe("SyncConnection", () => {
  test("a sidecar reports in when it has read the state of its pod, and no longer when it is gone", async () => {
    const client = await connect();
    client.send(PREFACE, settings(), call());
    await client.hears(FRAME.ping);
    expect(pods.reported).toEqual([]);
    client.send(applied());
    await pollUntil(() => pods.reported.length > 0, "the report");
    client.close();
    await pollUntil(() => pods.reported.length > 1, "the end of the report");

    expect(pods.reported).toEqual([{ pod0: EARLIER_RELEASE }, {}]);
  });

  test.each([
    ["does not speak HTTP/2", ["GET / HTTP/1.1\r\n\r\n"]],
    ["sends a frame that is too large", [PREFACE, new Uint8Array([1, 0, 0, 0, 0, 0, 0, 0, 1])]],
    ["says that it has read what it was not sent", [PREFACE, settings(0), call(), applied()]],
    [
      "sends a long request",
      [
        PREFACE,
        call(),
        ...new Array(2).fill(encodeFrame({ type: 0, flags: 0, stream: 1, payload: new Uint8Array(600) })),
      ],
    ],
    ["sends more frames than a client needs", [PREFACE, call(), ...new Array(10_000).fill(settings())]],
    ["sends frames, and does not call", [PREFACE, ...new Array(101).fill(settings())]],
    [
      "confirms another ping than it was sent",
      [PREFACE, settings(), call(), pingFrame(new TextEncoder().encode("applied!"), FLAG.ack)],
    ],
  ])("a program that %s is disconnected", async (_, pieces) => {
    const client = await connect();
    client.send(...pieces);
    await client.closed();

    expect(pods.feed.facts.refused).toEqual(new Map([["malformed", 1]]));
    expect(pods.reported).toEqual([]);
  });

  test("a program that does not call, or does not read, is disconnected", async () => {
    const [silent, lazy] = [await connect(0), await connect(1)];
    lazy.send(PREFACE, settings(0), call());
    await lazy.hears(FRAME.headers);
    await pollUntil(() => pods.feed.facts.updates === 1, "the update");
    pods.skipped += 6_000;
    await silent.closed();
    expect(lazy.isClosed).toBe(false);
    pods.skipped += 5_000;
    await lazy.closed();

    expect(lazy.frames).not.toContain(FRAME.data);
    expect(pods.feed.facts.refused).toEqual(new Map([["too slow", 2]]));
    expect(pods.reported).toEqual([]);
  });

  test("a second call on a connection is refused, and a second connection replaces the first", async () => {
    const [first, second] = [await connect(), await connect()];
    first.send(PREFACE, settings(), call(1), call(3));
    await first.hears(FRAME.resetStream);
    expect(first.isClosed).toBe(false);
    second.send(PREFACE, settings(), call());
    await first.closed();
    await second.hears(FRAME.data);
  });
});

/** Policies of pod 0 with this many paths each: one message for each of them. */
function setPolicies(count: number, { paths }: { readonly paths: number }): void {
  const rules = (policy: number) => [
    {
      action: "Allow" as const,
      protocol: "TCP",
      http: {
        paths: Array.from({ length: paths }, (_, index) => ({ exact: `/${policy}/${index}/${"x".repeat(80)}` })),
      },
    },
  ];
  const networkPolicies = Array.from({ length: count }, (_, index) =>
    networkPolicy.make(
      { name: `large${index}`, namespace: "namespace0" },
      { tier: "default", order: index, selector: "app == 'app0'", types: ["Ingress"], ingress: rules(index) },
    ),
  );
  pods.change({ ...pods.resources, networkPolicies });
}

const messagesIn = (data: Uint8Array) =>
  new MessageReader(4 * 1024 * 1024, () => new Error("a client refuses more than 4 MB")).read(data);

describe("flow control", () => {
  const LARGE = 200_000;

  test("sends as many bytes as the windows of the stream and of the connection allow, and a ping after the last", async () => {
    setPolicies(1, { paths: 4_000 });
    const client = await connect();
    const has = async (bytes: number) => {
      await client.settled();
      expect(client.data.length).toBe(bytes);
    };
    client.send(PREFACE, settings(30_000), call());
    await client.hears(FRAME.data);
    await has(30_000);
    client.send(widen(1, 100_000));
    await has(65_535);
    client.send(widen(0, 10_000));
    await has(75_535);
    client.send(widen(0, 2 ** 31 - 1 - 65_535));
    await has(130_000);
    // Less than what is on its way: the window of the stream is negative.
    client.send(settings(10_000), widen(1, 15_000));
    await has(130_000);
    client.send(widen(1, 5_001));
    await has(130_001);
    expect(client.asked).toBe(0);
    client.send(settings(2 ** 23));
    await client.settled();
    expect(client.asked).toBe(1);

    const messages = messagesIn(client.data);
    expect(Math.max(...messages.map(({ length }) => length))).toBeGreaterThan(LARGE);
    expect(pods.reported).toEqual([]);
    client.send(applied());
    await pollUntil(() => pods.reported.length > 0, "the report");
  });

  test("a client with open windows that reads later gets everything, and a ping after the last byte", async () => {
    setPolicies(1, { paths: 20_000 });
    const client = await connect();
    client.pause();
    client.send(PREFACE, settings(2 ** 23), widen(0, 2 ** 23), call());
    await pollUntil(() => pods.feed.facts.updates === 1, "the update");
    client.resume();
    await pollUntil(() => client.asked === 1, "the ping");

    expect(client.frames.at(-1)).toBe(FRAME.ping);
    expect(messagesIn(client.data).some(({ length }) => length > 5 * LARGE)).toBe(true);
    client.send(applied());
    await pollUntil(() => pods.reported.length > 0, "the report");
  });

  test.each([
    ["one large message", { policies: 1, paths: 10_000 }],
    ["many small messages", { policies: 2_000, paths: 1 }],
  ])("an HTTP/2 client of the runtime gets %s, and the next update", async (_, { policies, paths }) => {
    setPolicies(policies, { paths });
    const path = pods.addEarlierPod(0);
    const session = connectHttp2("http://localhost", { createConnection: () => connectSocket(path) });
    const pieces: Uint8Array[] = [];
    try {
      const stream = session.request({ ":method": "POST", ":path": "/felix.PolicySync/Sync" });
      stream.on("data", (piece: Uint8Array) => pieces.push(piece));
      stream.end();
      await pollUntil(() => pods.reported.length > 0, "the report");
      const whole = Buffer.concat(pieces);
      expect(whole.length).toBeGreaterThan(LARGE);
      // Policies, the endpoint, and that it is in sync; beside sets.
      expect(messagesIn(whole).length).toBeGreaterThanOrEqual(policies + 2);
      setPolicies(1, { paths: 5_000 });
      const next = () => messagesIn(Buffer.concat(pieces).subarray(whole.length));
      await pollUntil(() => next().some(({ length }) => length > LARGE), "the next update");
    } finally {
      session.destroy();
    }
  });

  test("clients that do not open their windows cost one update each until they are disconnected, and delay no other", async () => {
    const CHANGES = 10;
    const load = pods.resources.networkPolicies;
    const [closing, healthy, ...shut] = await Promise.all(Array.from({ length: 22 }, (_, index) => connect(index)));
    if (closing === undefined || healthy === undefined) throw new Error("there are no clients");
    setPolicies(1, { paths: 4_000 });
    for (const client of shut) client.send(PREFACE, settings(0), call());
    closing.send(PREFACE, settings(), call());
    await pollUntil(() => closing.data.length === 65_535, "the window of pod 0 to close");
    await pollUntil(() => pods.feed.facts.updates === shut.length + 1, "an update for each of them");

    healthy.send(PREFACE, settings(), call());
    for (let change = 0; change <= CHANGES; change += 1) {
      await pollUntil(() => healthy.asked > change, `update ${change}`);
      expect(pods.feed.facts.updates).toBe(shut.length + 2 + change);
      const networkPolicies = load.map((_, index) => policyOf(index, { policies: load.length, port: 1_000 + change }));
      if (change < CHANGES) pods.change({ ...pods.resources, networkPolicies });
      healthy.send(applied());
    }
    await healthy.settled();
    pods.skipped += 11_000;
    for (const client of [closing, ...shut]) await client.closed();

    expect(closing.data.length).toBe(65_535);
    for (const client of shut) expect(client.frames).not.toContain(FRAME.data);
    expect(pods.feed.facts.refused).toEqual(new Map([["too slow", shut.length + 1]]));
    await pollUntil(() => pods.reported.length === 1, "the report");
    expect(pods.reported).toEqual([{ pod1: EARLIER_RELEASE }]);
    expect(healthy.isClosed).toBe(false);
  });
});
