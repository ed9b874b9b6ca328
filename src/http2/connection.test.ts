import { describe, expect, test } from "bun:test";
import { Http2Connection } from "./connection.ts";
import { Http2Failure } from "./failure.ts";
import * as frames from "./frames.ts";
import { encodeFields } from "./header-fields.ts";
import { encodeSettings, MOST_STREAMS, WINDOW } from "./settings.ts";
import type { Opening, Stream } from "./stream.ts";

const PREFACE_BYTES = 24;
const REFUSED_STREAM = 7;
const CANCEL = 8;

/** A connection whose other side is the test, and has greeted unless told otherwise. */
function setUp(greeting: "greeted" | "silent" = "greeted") {
  const writes: Uint8Array[] = [];
  let isClosed = false;
  const connection = new Http2Connection({
    write: (bytes) => void writes.push(bytes),
    close: () => {
      isClosed = true;
    },
  });
  const reader = new frames.FrameReader();
  const preface = writes.splice(0);
  const settings = { type: frames.SETTINGS, flags: 0, stream: 0, payload: new Uint8Array(0) };
  if (greeting === "greeted") connection.receive(frames.encodeFrame(settings));
  writes.splice(0);
  const sent = () => reader.read(Buffer.concat(writes.splice(0)));
  const send = (type: number, stream: number, payload: Uint8Array, flags = 0) =>
    connection.receive(frames.encodeFrame({ type, flags, stream, payload }));
  const answer = (stream: number, text: string) => {
    send(frames.HEADERS, stream, encodeFields([[":status", "200"]]), frames.END_HEADERS);
    send(frames.DATA, stream, Buffer.from(text), frames.END_STREAM);
  };
  return { connection, preface, writes, sent, send, answer, isClosed: () => isClosed };
}

type Side = ReturnType<typeof setUp>;

interface Told {
  readonly stream: Stream;
  readonly events: string[];
  readonly failure: () => unknown;
}

function openOn({ connection }: Side, opening: Partial<Opening> = {}): Told {
  const fields = encodeFields([[":path", "/"]]);
  const events: string[] = [];
  let failure: unknown;
  const stream = connection.open(
    { fields, body: Buffer.from("ask"), more: "last", ...opening },
    {
      headers: (seen) => events.push(...[...seen].map(([name, value]) => `${name} ${value}`)),
      data: (bytes) => events.push(Buffer.from(bytes).toString()),
      end: () => events.push("end"),
      failed: (error) => {
        failure = error;
      },
    },
  );
  return { stream, events, failure: () => failure };
}

const dataBytes = (sent: readonly frames.Frame[], stream: number) =>
  sent
    .filter(({ type, stream: of }) => type === frames.DATA && of === stream)
    .reduce((sum, { payload }) => sum + payload.length, 0);

describe("Http2Connection", () => {
  test("introduces itself with settings that forbid pushing and widen the windows", () => {
    const { preface } = setUp();
    const bytes = Buffer.concat(preface);

    expect(bytes.subarray(0, PREFACE_BYTES).toString()).toBe("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    expect(new frames.FrameReader().read(bytes.subarray(PREFACE_BYTES)).map(({ type }) => type)).toEqual([
      frames.SETTINGS,
      frames.WINDOW_UPDATE,
    ]);
  });

  test("sends a request in one piece, and tells its answer", () => {
    const side = setUp();
    const { events } = openOn(side);

    expect(side.writes).toHaveLength(1);
    expect(side.sent().map(({ type, flags, stream }) => [type, flags, stream])).toEqual([
      [frames.HEADERS, frames.END_HEADERS, 1],
      [frames.DATA, frames.END_STREAM, 1],
    ]);
    side.answer(1, "said");
    expect(events).toEqual([":status 200", "said", "end"]);
    expect(side.sent()).toEqual([]);
  });

  test("gives streams numbers of their own and their own answers", () => {
    const side = setUp();
    const [first, second] = [openOn(side), openOn(side)];
    side.answer(3, "to the second");
    side.answer(1, "to the first");

    expect([first.events, second.events].map((events) => events[1])).toEqual(["to the first", "to the second"]);
  });

  test("understands what comes byte by byte", () => {
    const side = setUp();
    const { events } = openOn(side);
    const head = { type: frames.HEADERS, flags: frames.END_HEADERS, stream: 1 };
    const body = { type: frames.DATA, flags: frames.END_STREAM, stream: 1, payload: Buffer.from("slowly") };
    const all = [frames.encodeFrame({ ...head, payload: encodeFields([["a", "b"]]) }), frames.encodeFrame(body)];
    for (const byte of Buffer.concat(all)) side.connection.receive(Uint8Array.of(byte));

    expect(events).toEqual(["a b", "slowly", "end"]);
  });

  test("puts header fields together that come in several frames", () => {
    const side = setUp();
    const { events } = openOn(side);
    const block = encodeFields([["grpc-status", "0"]]);
    side.send(frames.HEADERS, 1, block.subarray(0, 3), frames.END_STREAM);
    side.send(frames.CONTINUATION, 1, block.subarray(3, 5));
    side.send(frames.CONTINUATION, 1, block.subarray(5), frames.END_HEADERS);

    expect(events).toEqual(["grpc-status 0", "end"]);
  });

  test("leaves padding and priorities out", () => {
    const side = setUp();
    const { events } = openOn(side);
    const block = encodeFields([["a", "b"]]);
    const padded = Buffer.concat([Uint8Array.of(2, 0, 0, 0, 0, 9), block, Uint8Array.of(0, 0)]);
    side.send(frames.HEADERS, 1, padded, frames.END_HEADERS | 0x28);
    side.send(frames.DATA, 1, Uint8Array.of(1, 0x6f, 0x6b, 0), frames.END_STREAM | 0x8);

    expect(events).toEqual(["a b", "ok", "end"]);
  });

  test("knows that the other side speaks HTTP/2 once it has told its settings", async () => {
    const side = setUp("silent");
    expect(side.connection.isGreeted).toBe(false);
    side.send(frames.SETTINGS, 0, new Uint8Array(0));

    expect(side.connection.isGreeted).toBe(true);
    await side.connection.greeted;
  });

  test.each([
    ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
    ["another frame", frameOf(frames.PING)],
  ])("is not taken in by %s in the place of settings", async (_, bytes) => {
    const side = setUp("silent");
    side.connection.receive(bytes);

    expect(side.isClosed()).toBe(true);
    expect(side.connection.greeted).rejects.toMatchObject({ kind: "broken" });
  });

  describe("windows", () => {
    test("sends no more than the other side takes, of a stream and in all", () => {
      const side = setUp();
      openOn(side, { body: new Uint8Array(100_000) });
      const first = side.sent();

      expect(dataBytes(first, 1)).toBe(65_535);
      expect(Math.max(...first.map(({ payload }) => payload.length))).toBe(frames.LARGEST_PAYLOAD);
      side.send(frames.WINDOW_UPDATE, 1, frames.numberBytes(50_000));
      expect(dataBytes(side.sent(), 1)).toBe(0);
      side.send(frames.WINDOW_UPDATE, 0, frames.numberBytes(20_000));
      expect(dataBytes(side.sent(), 1)).toBe(20_000);
      side.send(frames.WINDOW_UPDATE, 0, frames.numberBytes(50_000));
      const last = side.sent();
      expect(dataBytes(last, 1)).toBe(14_465);
      expect(last.at(-1)?.flags).toBe(frames.END_STREAM);
    });

    test("heeds a window that is changed under way, even to less than was sent", () => {
      const side = setUp();
      side.send(frames.WINDOW_UPDATE, 0, frames.numberBytes(1_000_000));
      openOn(side, { body: new Uint8Array(70_000) });
      side.sent();
      side.send(frames.SETTINGS, 0, encodeSettings([WINDOW, 1_000]));
      side.send(frames.WINDOW_UPDATE, 1, frames.numberBytes(64_535));
      expect(dataBytes(side.sent(), 1)).toBe(0);

      side.send(frames.SETTINGS, 0, encodeSettings([WINDOW, 2_000]));
      expect(dataBytes(side.sent(), 1)).toBe(1_000);
      openOn(side, { body: new Uint8Array(9_000) });
      expect(dataBytes(side.sent(), 3)).toBe(2_000);
    });

    test("does not take the bit that means nothing for a part of a number", () => {
      const side = setUp();
      const reserved = 0x8000_0000;
      openOn(side, { body: new Uint8Array(100_000) });
      side.sent();
      side.send(frames.WINDOW_UPDATE, 1, frames.numberBytes(reserved + 50_000));
      side.send(frames.WINDOW_UPDATE, 0, frames.numberBytes(reserved + 10));
      expect(dataBytes(side.sent(), 1)).toBe(10);

      const told = openOn(side);
      side.send(frames.GO_AWAY, 0, Buffer.concat([frames.numberBytes(reserved + 1), frames.numberBytes(0)]));
      expect(told.failure()).toMatchObject({ kind: "refused" });
    });

    test("lets the other side send on once half of a stream's window was taken", () => {
      const side = setUp();
      const { stream } = openOn(side);
      side.sent();
      stream.taken(500_000);
      expect(side.sent()).toEqual([]);

      stream.taken(100_000);
      expect(side.sent()).toMatchObject([{ type: frames.WINDOW_UPDATE, stream: 1 }]);
      side.answer(1, "");
      stream.taken(1_000_000);
      expect(side.sent()).toEqual([]);
    });
  });

  test("keeps requests back that the other side has no place for", () => {
    const side = setUp();
    side.send(frames.SETTINGS, 0, encodeSettings([MOST_STREAMS, 1]));
    const [first, second, third] = [openOn(side), openOn(side), openOn(side)];
    second.stream.cancel();
    side.sent();
    side.answer(1, "one");

    expect(first.events).toContain("one");
    expect(side.sent()[0]).toMatchObject({ type: frames.HEADERS, stream: 3 });
    side.answer(3, "two");
    expect(third.events).toContain("two");
    expect(second.events).toEqual([]);
  });

  test("acknowledges settings and answers a ping, but not their acknowledgements", () => {
    const side = setUp();
    side.send(frames.SETTINGS, 0, encodeSettings([9, 9]));
    side.send(frames.PING, 0, Buffer.from("whoisit?"));
    const sent = side.sent();

    expect(sent.map(({ type, flags }) => [type, flags])).toEqual([
      [frames.SETTINGS, frames.ACKNOWLEDGED],
      [frames.PING, frames.ACKNOWLEDGED],
    ]);
    expect(Buffer.from(sent[1]?.payload ?? []).toString()).toBe("whoisit?");
    side.send(frames.SETTINGS, 0, new Uint8Array(0), frames.ACKNOWLEDGED);
    side.send(frames.PING, 0, new Uint8Array(8), frames.ACKNOWLEDGED);
    expect(side.sent()).toEqual([]);
  });

  test("takes no new requests once it is retired, asks for a sign of life, and closes behind the last answer", () => {
    const side = setUp();
    side.send(frames.SETTINGS, 0, encodeSettings([MOST_STREAMS, 1]));
    const [begun, waiting] = [openOn(side), openOn(side)];
    side.sent();
    side.connection.retire();
    side.connection.retire();

    expect(side.sent()).toMatchObject([{ type: frames.PING, flags: 0, payload: new Uint8Array(8) }]);
    expect(waiting.failure()).toMatchObject({ kind: "refused" });
    expect([begun.failure(), side.connection.isOpen, side.isClosed()]).toEqual([undefined, false, false]);
    side.answer(1, "late");
    expect(begun.events).toContain("late");
    expect(side.isClosed()).toBe(true);
  });

  test("passes over frames of kinds that it does not know, and of streams that are gone", () => {
    const side = setUp();
    const { stream, events } = openOn(side);
    stream.cancel();
    expect(side.sent().at(-1)).toMatchObject({ type: frames.RESET, stream: 1, payload: frames.numberBytes(CANCEL) });
    side.send(200, 1, new Uint8Array(5));
    side.answer(1, "too late");

    expect(events).toEqual([]);
    expect(side.connection.isOpen).toBe(true);
  });

  test("gives a request up that is answered before it has come to its end", () => {
    const side = setUp();
    const { events } = openOn(side, { more: "more to come" });
    side.sent();
    side.answer(1, "enough");

    expect(events).toContain("enough");
    expect(side.sent()).toMatchObject([{ type: frames.RESET, stream: 1 }]);
  });

  describe("failures", () => {
    test.each([
      [REFUSED_STREAM, "refused"],
      [2, "broken"],
    ] as const)("tells a reset with code %d as %s", (code, kind) => {
      const side = setUp();
      const told = openOn(side);
      side.send(frames.RESET, 1, frames.numberBytes(code));

      expect(told.failure()).toMatchObject({ kind });
      expect(side.connection.isOpen).toBe(true);
    });

    test("refuses what a farewell leaves out, waits for the rest, and closes", () => {
      const side = setUp();
      const [first, second] = [openOn(side), openOn(side)];
      side.send(frames.GO_AWAY, 0, Buffer.concat([frames.numberBytes(1), frames.numberBytes(0)]));

      expect(second.failure()).toMatchObject({ kind: "refused" });
      expect([first.failure(), side.connection.isOpen, side.isClosed()]).toEqual([undefined, false, false]);
      expect(openOn(side).failure()).toMatchObject({ kind: "refused" });
      side.answer(1, "still");
      expect(first.events).toContain("still");
      expect(side.isClosed()).toBe(true);
    });

    test.each([["ECONNRESET"], ["EHOSTUNREACH"], ["ERR_SSL_BAD_RECORD_MAC"]])(
      "takes no error of the wire (%s) for proof that nothing was begun",
      (code) => {
        const side = setUp();
        const told = openOn(side);
        const cause = Object.assign(new Error("cut"), { code });
        side.connection.lost(cause);

        expect(told.failure()).toMatchObject({ kind: "broken", message: "cut", cause });
      },
    );

    test("hands on why the wire was lost before the other side had greeted: it may have refused the certificate", () => {
      const side = setUp("silent");
      const told = openOn(side);
      const cause = new Error("certificate required");
      side.connection.lost(cause);

      expect(told.failure()).toBe(cause);
    });

    test("tells every stream when the wire is lost; those that waited were never begun", () => {
      const side = setUp();
      side.send(frames.SETTINGS, 0, encodeSettings([MOST_STREAMS, 1]));
      const [begun, waiting] = [openOn(side), openOn(side)];
      side.connection.lost(new Error("cut"));

      expect(begun.failure()).toMatchObject({ kind: "broken" });
      expect(waiting.failure()).toMatchObject({ kind: "refused" });
      expect(openOn(side).failure()).toMatchObject({ kind: "refused" });
    });

    test.each([
      ["another protocol", Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n")],
      ["fields that go on without a beginning", frameOf(frames.CONTINUATION, new Uint8Array(1))],
      [
        "fields that are interrupted",
        Buffer.concat([frameOf(frames.HEADERS, new Uint8Array(1)), frameOf(frames.PING)]),
      ],
      ["more padding than there is", frameOf(frames.DATA, Uint8Array.of(9, 0), 0x8)],
      ["a window without a number", frameOf(frames.WINDOW_UPDATE, new Uint8Array(2))],
      ["fields that nobody can read", frameOf(frames.HEADERS, Uint8Array.of(0xff), frames.END_HEADERS)],
    ])("closes on %s", (_, bytes) => {
      const side = setUp();
      const told = openOn(side);
      side.connection.receive(bytes);

      expect(told.failure()).toBeInstanceOf(Http2Failure);
      expect(told.failure()).toMatchObject({ kind: "broken" });
      expect(side.isClosed()).toBe(true);
    });
  });
});

function frameOf(type: number, payload: Uint8Array = new Uint8Array(8), flags = 0): Uint8Array {
  return frames.encodeFrame({ type, flags, stream: 1, payload });
}
