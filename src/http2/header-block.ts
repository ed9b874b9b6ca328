/** Header fields out of the frames that carry them: HEADERS, and CONTINUATION for what it does not hold. */
import { Http2Failure } from "./failure.ts";
import { CONTINUATION, contentOf, END_HEADERS, END_STREAM, type Frame, HEADERS } from "./frames.ts";
import { FieldReader } from "./header-fields.ts";

export interface ReadHeaders {
  readonly stream: number;
  readonly fields: ReadonlyMap<string, string>;
  /** Nothing follows them. */
  readonly isEnd: boolean;
}

/** No answer has so much to say about itself. */
const LARGEST_BLOCK = 1024 * 1024;

export class HeaderBlockReader {
  private readonly fieldReader = new FieldReader();
  private begun: { readonly first: Frame; readonly bytes: Uint8Array } | undefined;

  /** Takes every frame of the connection: once fields have begun, no other may come between. */
  take(frame: Frame): ReadHeaders | undefined {
    if (this.begun === undefined) {
      if (frame.type === CONTINUATION) throw new Http2Failure("broken", "header fields go on that never began");
      return frame.type === HEADERS ? this.goOn(frame, frame, contentOf(frame)) : undefined;
    }
    const { first, bytes } = this.begun;
    if (frame.type !== CONTINUATION || frame.stream !== first.stream) {
      throw new Http2Failure("broken", "header fields are interrupted");
    }
    if (bytes.length > LARGEST_BLOCK) throw new Http2Failure("broken", "header fields have no end");
    return this.goOn(first, frame, Buffer.concat([bytes, frame.payload]));
  }

  private goOn(first: Frame, last: Frame, bytes: Uint8Array): ReadHeaders | undefined {
    const isComplete = (last.flags & END_HEADERS) !== 0;
    this.begun = isComplete ? undefined : { first, bytes };
    if (!isComplete) return undefined;
    const isEnd = (first.flags & END_STREAM) !== 0;
    return { stream: first.stream, fields: this.fieldReader.read(bytes), isEnd };
  }
}
