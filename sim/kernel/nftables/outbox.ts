/** Puts messages of the kernel together to datagrams, and sends them when they are full. */
import { MessageWriter } from "../../../src/linux/netlink/message-writer.ts";
import { FLAG, HEADER_LENGTH, MESSAGE } from "../../../src/linux/netlink/wire.ts";

export interface MessageHead {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
}

const FULL = 28_000;
const ERROR_LENGTH = 4;

export class Outbox {
  #writer = new MessageWriter();

  /** `port`: the address of the socket that asked, or that made the change. */
  constructor(
    private readonly port: number,
    private readonly send: (bytes: Uint8Array) => void,
  ) {}

  put(head: MessageHead, write: (writer: MessageWriter) => void): void {
    if (this.#writer.length >= FULL) this.flush();
    const start = this.#writer.length;
    this.#writer.beginMessage(head.type, head.flags, head.sequence);
    write(this.#writer);
    this.#writer.endMessage();
    const bytes = this.#writer.written();
    new DataView(bytes.buffer, bytes.byteOffset).setUint32(start + HEADER_LENGTH - ERROR_LENGTH, this.port, true);
  }

  flush(): void {
    if (this.#writer.length === 0) return;
    this.send(this.#writer.written());
    this.#writer = new MessageWriter();
  }

  /** Whether a request is done, in a datagram of its own; `errno` 0 is success. */
  acknowledge(request: MessageHead & { readonly length: number }, errno: number): void {
    this.flush();
    this.put({ type: MESSAGE.error, flags: FLAG.capped, sequence: request.sequence }, (writer) => {
      const body = new Uint8Array(ERROR_LENGTH + HEADER_LENGTH);
      const view = new DataView(body.buffer);
      view.setInt32(0, -errno, true);
      view.setUint32(4, request.length, true);
      view.setUint16(8, request.type, true);
      view.setUint16(10, request.flags, true);
      view.setUint32(12, request.sequence, true);
      view.setUint32(16, this.port, true);
      writer.raw(body);
    });
    this.flush();
  }

  /** The end of a list. */
  done(sequence: number, flags: number): void {
    this.put({ type: MESSAGE.done, flags: FLAG.multipart | flags, sequence }, (writer) =>
      writer.raw(new Uint8Array(ERROR_LENGTH)),
    );
    this.flush();
  }
}
