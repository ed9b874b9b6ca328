/** Colours, on a terminal that wants them; otherwise the text as it is. */
import type { Context } from "./command.ts";

export interface Paint {
  bold(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
  green(text: string): string;
}

const ESCAPE = "\u001b";

/** For what goes to stderr, which may be a terminal where stdout is none, and none where stdout is one. */
export function paintComplaint({ env, showsProgress }: Pick<Context, "env" | "showsProgress">): Paint {
  return paint({ env, isTerminal: showsProgress });
}

/** For what goes to stdout. https://no-color.org: any value but the empty one forbids colours. */
export function paint({ env, isTerminal }: Pick<Context, "env" | "isTerminal">): Paint {
  const allowed = isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const style = (code: number) => (text: string) => (allowed ? `${ESCAPE}[${code}m${text}${ESCAPE}[0m` : text);
  return { bold: style(1), red: style(31), yellow: style(33), green: style(32) };
}
