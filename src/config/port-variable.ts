import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

/** A port that an environment variable names. Throws for any other value. */
export function portIn(
  environment: Readonly<Record<string, string | undefined>>,
  name: string,
  otherwise: number,
): number {
  const text = environment[name];
  if (text === undefined || text === "") return otherwise;
  const port = Number(text);
  if (Number.isInteger(port) && port >= 1 && port <= 65_535) return port;
  throw new PluginError(
    "config-invalid",
    `Cannot use the environment variable ${name}: ${quoted(text)} is not a port; use a number from 1 to 65535`,
  );
}
