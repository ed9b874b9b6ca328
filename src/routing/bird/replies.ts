/**
 * The replies of BIRD's control socket: lines of text, each with a code.
 *
 *   1002-Mesh_10_0_0_2 BGP …     a line, and more follow
 *    BGP state: Established      another line of the same code
 *   0000                         the last line
 *
 * The codes: 0… success, 1… data, 2… headings, 8… errors at run time, 9… unknown commands.
 */
export interface BirdReply {
  /** Of its last line. */
  readonly code: number;
  /** Without codes. */
  readonly lines: readonly string[];
}

/** Collects the text that arrives, in any pieces. */
export class ReplyReader {
  #rest = "";
  #lines: string[] = [];

  /** Returns the replies that this text completes. */
  read(text: string): readonly BirdReply[] {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    return lines.flatMap((line) => this.#readLine(line));
  }

  #readLine(line: string): readonly BirdReply[] {
    const coded = /^(\d{4})([ -])(.*)$/.exec(line);
    if (coded === null) {
      // A continuation starts with one space; a `+` is a message for another client.
      if (line.startsWith(" ")) this.#lines.push(line.slice(1));
      return [];
    }
    const [, code = "", more, text = ""] = coded;
    this.#lines.push(text);
    if (more === "-") return [];
    const reply = { code: Number(code), lines: this.#lines };
    this.#lines = [];
    return [reply];
  }
}

export function isRefused({ code }: BirdReply): boolean {
  return code >= 8000;
}
