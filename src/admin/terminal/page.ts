/** The terminal or file that text is printed to. */

import type { Call, Terminal } from "../main/context.ts";
import { type Paint, paint, paintStderr } from "./paint.ts";

export interface Page {
  readonly paint: Paint;
  /** In columns; without a limit if it is not a terminal. */
  readonly width: number;
}

/** What is not a terminal, and what the user asked for in full (`-o wide`). */
export const WITHOUT_LIMIT = Number.POSITIVE_INFINITY;

export function stdoutPage(context: Pick<Call, "env"> & Pick<Terminal, "isTerminal" | "terminalWidth">): Page {
  return { paint: paint(context), width: widthOf(context) };
}

export function stderrPage(context: Call & Terminal): Page {
  return { paint: paintStderr(context), width: widthOf(context) };
}

function widthOf({ terminalWidth }: Pick<Terminal, "terminalWidth">): number {
  return terminalWidth || WITHOUT_LIMIT;
}

/** Breaks also a word that is longer than a line, such as a path: it is needed whole. */
export function wrappedWhole(text: string, width: number): readonly string[] {
  if (text.length <= width) return [text];
  const longest = Math.max(1, width);
  return wrapped(text, longest).flatMap((line) =>
    Array.from({ length: Math.max(1, Math.ceil(line.length / longest)) }, (_, part) =>
      line.slice(part * longest, (part + 1) * longest),
    ),
  );
}

/** Text after a title, its other lines below its first. */
export function hanging(title: string, text: string, width: number): readonly string[] {
  const indent = " ".repeat(title.length);
  return wrappedWhole(text, width - title.length).map((line, index) => `${index === 0 ? title : indent}${line}`);
}

/** Breaks text between words if it is too long for one line. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}
