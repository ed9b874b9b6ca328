/** What programs in place of an earlier sidecar may do; what such a sidecar gets is tested with a real one (test/policy). */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Socket } from "bun";
import { FedPods } from "../../../test/support/fed-pods.ts";
import { pollUntil } from "../../../test/support/poll.ts";
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
    payload: new Uint8Array([0, 4, 0, 0, window >> 8, window & 255]),
  });
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

  close(): void {
    this.socket?.terminate();
  }

  /** Types of the frames that have arrived. */
  get frames(): readonly number[] {
    const types: number[] = [];
    for (let at = 0; at + 9 <= this.received.length; at += 9 + this.received.readUIntBE(at, 3)) {
      types.push(this.received[at + 3] ?? -1);
    }
    return types;
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
