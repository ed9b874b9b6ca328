/** Colours text for a terminal that supports them; otherwise leaves it unchanged. */

import type { Call, Terminal } from "../main/context.ts";

export interface Paint {
  bold(text: string): string;
  red(text: string): string;
  yellow(text: string): string;
  green(text: string): string;
  blue(text: string): string;
  magenta(text: string): string;
  cyan(text: string): string;
  /** Less visible than other text. */
  faint(text: string): string;
}

const ESCAPE = "\u001b";

/** For stderr: whether it is a terminal does not depend on stdout. */
export function paintStderr({ env, showsProgress }: Pick<Call, "env"> & Pick<Terminal, "showsProgress">): Paint {
  return paint({ env, isTerminal: showsProgress });
}

/** For stdout. https://no-color.org: any value except the empty string disables colours. */
export function paint({ env, isTerminal }: Pick<Call, "env"> & Pick<Terminal, "isTerminal">): Paint {
  const allowed = isTerminal && !env["NO_COLOR"] && env["TERM"] !== "dumb";
  const style = (code: number) => (text: string) => (allowed ? `${ESCAPE}[${code}m${text}${ESCAPE}[0m` : text);
  return {
    bold: style(1),
    red: style(31),
    yellow: style(33),
    green: style(32),
    blue: style(34),
    magenta: style(35),
    cyan: style(36),
    faint: style(2),
  };
}
